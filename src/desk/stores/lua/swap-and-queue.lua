-- Replaces a stream's tab, if it is still the one the caller saw, and with it what hangs on it: its checkpoints' paths
-- and its place in the queue. Once or twice between two settlements of a stream, and at its checkpoints.
--
-- KEYS[1]  hash of the stream: field t, the tab; field j, its checkpoints' paths
-- KEYS[2]  sorted set: streams by due time, milliseconds
-- KEYS[3]  sorted set: streams by last Pulse
-- KEYS[4]  set: every stream that has a tab
-- ARGV[1]  the first 9 bytes (format and version) of the tab to replace; empty where there must be none
-- ARGV[2]  the new tab
-- ARGV[3]  the new paths; empty to leave them as they are
-- ARGV[4]  the stream's id
-- ARGV[5]  due time, milliseconds, as text; 'never' to take it out of the queue; empty to leave it as it is
-- ARGV[6]  last Pulse, as text; read only beside a due time
--
-- Returns 1 when it is replaced, or already was by this very call, sent twice over a broken connection.
-- Otherwise { tab, paths } as they are, empty where there are none; nothing was touched.

local current = redis.call('HGET', KEYS[1], 't') or ''
if string.sub(current, 1, 9) ~= ARGV[1] then
  if current == ARGV[2] then
    return 1
  end
  return { current, redis.call('HGET', KEYS[1], 'j') or '' }
end

redis.call('HSET', KEYS[1], 't', ARGV[2])
if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], 'j', ARGV[3])
end
if current == '' then
  redis.call('SADD', KEYS[4], ARGV[4])
end
if ARGV[5] == 'never' then
  redis.call('ZREM', KEYS[2], ARGV[4])
  redis.call('ZREM', KEYS[3], ARGV[4])
elseif ARGV[5] ~= '' then
  redis.call('ZADD', KEYS[2], ARGV[5], ARGV[4])
  redis.call('ZADD', KEYS[3], ARGV[6], ARGV[4])
end
return 1
