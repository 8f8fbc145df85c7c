-- Forgets a stream, if its tab is still the one the caller saw.
--
-- KEYS[1]  hash of the stream
-- KEYS[2]  sorted set: streams by due time
-- KEYS[3]  sorted set: streams by last Pulse
-- KEYS[4]  set: every stream that has a tab
-- ARGV[1]  the first 9 bytes (format and version) of the tab
-- ARGV[2]  the stream's id
--
-- Returns 1 when it is forgotten; 0 when the tab is another one, and then nothing was touched.

local current = redis.call('HGET', KEYS[1], 't') or ''
if string.sub(current, 1, 9) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[2], ARGV[2])
redis.call('ZREM', KEYS[3], ARGV[2])
redis.call('SREM', KEYS[4], ARGV[2])
return 1
