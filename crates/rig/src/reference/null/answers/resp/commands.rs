//! The commands of Redis that the null server knows.

use crate::reference::replies::resp::About;

/// How the commands of a group are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::reference::null::answers) enum Answer {
    Ok,
    /// The number 0.
    Zero,
    /// The number 1.
    One,
    /// How many of the keys there are.
    Exists,
    /// The same, and they are gone.
    Delete,
    Ping,
    Echo,
    /// `GET`, remembered.
    Get,
    /// A value that is never remembered.
    Value,
    /// A value, or with a count that many.
    Pop,
    /// A member and its score.
    PopScore,
    /// A value for each field.
    Values,
    /// `MGET`, remembered.
    GetMany,
    /// As many values as lie between the first and the last index.
    Range,
    /// One value in a list.
    List,
    /// One name and its value.
    Map,
    /// A list of nothing.
    Nothing,
    /// A cursor at its end and a list of nothing.
    Scan,
    /// `SET`, whose value is the third word.
    Set,
    /// `SETEX`, whose value is the fourth.
    SetFor,
    SetMany,
    Flush,
    Type,
    Script,
    /// What both servers tell about the connection and themselves.
    About(About),
}

/// Every command that is known, by its answer.
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
    (Answer::About(About::Hello), "hello"),
    (Answer::About(About::Client), "client"),
    (Answer::About(About::Config), "config"),
    (Answer::About(About::Info), "info"),
    (Answer::Script, "script"),
    (Answer::About(About::Command), "command"),
    (Answer::About(About::Cluster), "cluster"),
    (Answer::About(About::Reset), "reset"),
    (Answer::About(About::Quit), "quit"),
];
