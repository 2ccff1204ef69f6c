//! Redis commands of the null server.

use crate::reference::replies::resp::ConnectionCommand;

/// Kind of reply for a group of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reference::null::answers) enum Answer {
    Ok,
    /// The number 0.
    Zero,
    /// The number 1.
    One,
    /// Number of the keys that exist.
    Exists,
    /// Number of the keys that existed, after deleting them.
    Delete,
    Ping,
    Echo,
    /// `GET`, using remembered values.
    Get,
    /// A value that is never remembered.
    Value,
    /// One value, or as many as the count says.
    Pop,
    /// A member and its score.
    PopScore,
    /// A value for each field.
    Values,
    /// `MGET`, using remembered values.
    GetMany,
    /// The number of values between the first and the last index.
    Range,
    /// A list of one value.
    List,
    /// One name and its value.
    Map,
    /// An empty list.
    Nothing,
    /// A finished cursor and an empty list.
    Scan,
    /// `SET`: the value is the third word.
    Set,
    /// `SETEX`: the value is the fourth word.
    SetFor,
    SetMany,
    Flush,
    Type,
    Script,
    /// Commands about the connection or the server.
    ConnectionCommand(ConnectionCommand),
}

/// All known commands by kind of reply.
pub(in crate::reference::null::answers) const COMMANDS: [(Answer, &str); 32] = [
    (Answer::Get, "get getex"),
    (Answer::Set, "set"),
    (Answer::SetFor, "setex psetex"),
    (Answer::SetMany, "mset"),
    (Answer::GetMany, "mget"),
    (Answer::Delete, "del unlink"),
    (Answer::Exists, "exists touch"),
    (
        Answer::One,
        "incr decr incrby decrby append strlen setrange setnx msetnx expire pexpire \
        expireat pexpireat persist ttl pttl renamenx copy lpush rpush lpushx rpushx llen \
        lrem linsert sadd srem scard sismember smove hset hsetnx hdel hlen hexists \
        hincrby zadd zrem zcard zcount zrank zrevrank pfadd pfcount setbit getbit \
        bitcount publish eval evalsha xadd xlen",
    ),
    (Answer::Zero, "dbsize wait lastsave"),
    (
        Answer::Ok,
        "auth select hmset rename ltrim lset watch unwatch swapdb save readonly readwrite \
        asking pfmerge",
    ),
    (
        Answer::Value,
        "hget getset getdel getrange lindex hstrlen randomkey dump zscore rpoplpush lmove \
        incrbyfloat hincrbyfloat zincrby",
    ),
    (Answer::Pop, "lpop rpop spop srandmember hrandfield zrandmember"),
    (Answer::PopScore, "zpopmin zpopmax"),
    (Answer::Values, "hmget zmscore"),
    (Answer::Range, "lrange zrange zrevrange"),
    (
        Answer::List,
        "smembers hkeys hvals sort sinter sunion sdiff zrangebyscore zrevrangebyscore \
        zrangebylex",
    ),
    (Answer::Map, "hgetall"),
    (Answer::Nothing, "keys latency slowlog module"),
    (Answer::Scan, "scan sscan hscan zscan"),
    (Answer::Flush, "flushall flushdb"),
    (Answer::Type, "type"),
    (Answer::Ping, "ping"),
    (Answer::Echo, "echo"),
    (Answer::ConnectionCommand(ConnectionCommand::Hello), "hello"),
    (Answer::ConnectionCommand(ConnectionCommand::Client), "client"),
    (Answer::ConnectionCommand(ConnectionCommand::Config), "config"),
    (Answer::ConnectionCommand(ConnectionCommand::Info), "info"),
    (Answer::Script, "script"),
    (Answer::ConnectionCommand(ConnectionCommand::Command), "command"),
    (Answer::ConnectionCommand(ConnectionCommand::Cluster), "cluster"),
    (Answer::ConnectionCommand(ConnectionCommand::Reset), "reset"),
    (Answer::ConnectionCommand(ConnectionCommand::Quit), "quit"),
];
