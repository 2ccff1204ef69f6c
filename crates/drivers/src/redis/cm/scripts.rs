//! Scripts that do on the server what the module of 2019 does with pipelines.
//!
//! Each is our own text with the commands, keys and arguments of the module's script, so the server
//! does the same work; only the script's name differs. The first line allows undeclared keys on
//! Dragonfly.

use super::super::counted::Script;

/// Saves a record and returns its previous tags as stored; empty for none.
///
/// Keys: its tags. Arguments: prefix of records; fields of data, tags, time and infinity; set of
/// tags; prefix of tag sets; set of IDs; ID; data; tags; time; 1 for infinity or 0; lifetime; 1 to
/// maintain the set of IDs or 0.
pub(super) const SAVE: Script = Script {
    text: "--!df flags=allow-undeclared-keys
local key, id = ARGV[1] .. ARGV[9], ARGV[9]
local before = redis.call('HGET', key, ARGV[3])
redis.call('HMSET', key, ARGV[2], ARGV[10], ARGV[3], ARGV[11], ARGV[4], ARGV[12], ARGV[5], ARGV[13])
if ARGV[13] == '0' then redis.call('EXPIRE', key, ARGV[14]) end
if #KEYS > 0 then
  redis.call('SADD', ARGV[6], unpack(KEYS))
  for n = 1, #KEYS do redis.call('SADD', ARGV[7] .. KEYS[n], id) end
end
if ARGV[15] == '1' then redis.call('SADD', ARGV[8], id) end
return before or ''",
    sha: "5a3e69211080564164a95c90c00a0a4167bc8043",
};

/// Removes the records with any of the tags, and these tags.
///
/// Keys: the tags. Arguments: prefix of tag sets, prefix of records, set of tags, set of IDs, 1 to
/// maintain the set of IDs or 0, number of tags per batch.
pub(super) const CLEAN: Script = Script {
    text: "--!df flags=allow-undeclared-keys
local sets, step = {}, tonumber(ARGV[6])
for n = 1, #KEYS do sets[n] = ARGV[1] .. KEYS[n] end
for first = 1, #KEYS, step do
  local last = math.min(#KEYS, first + step - 1)
  for _, id in ipairs(redis.call('SUNION', unpack(sets, first, last))) do
    redis.call('UNLINK', ARGV[2] .. id)
    if ARGV[5] == '1' then redis.call('SREM', ARGV[4], id) end
  end
  redis.call('UNLINK', unpack(sets, first, last))
  redis.call('SREM', ARGV[3], unpack(KEYS, first, last))
end
return 1",
    sha: "baf790654d9c066433b792930894c8dbdee2f4e5",
};

/// Removes an ID from a tag's set if its record is still missing; returns 1 if it exists again.
///
/// Keys: the record, the tag's set, the set of IDs. Arguments: the ID, 1 to maintain the set of IDs
/// or 0.
pub(super) const FORGET: Script = Script {
    text: "--!df flags=allow-undeclared-keys
local there = redis.call('EXISTS', KEYS[1])
if there == 0 then
  redis.call('SREM', KEYS[2], ARGV[1])
  if ARGV[2] == '1' then redis.call('SREM', KEYS[3], ARGV[1]) end
end
return there",
    sha: "fcddd1b148f3732450bad28c397ccd971ca71202",
};
