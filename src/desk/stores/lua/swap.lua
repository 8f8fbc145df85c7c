-- Replaces a stream's tab, if it is still the one the caller saw. The command of the normal path: one per payment.
--
-- KEYS[1]  hash of the stream: field t, the tab; field j, its checkpoints' paths
-- ARGV[1]  the first 9 bytes (format and version) of the tab to replace; empty where there must be none
-- ARGV[2]  the new tab
--
-- Returns 1 when it is replaced, or already was by this very call, sent twice over a broken connection.
-- Otherwise { tab, paths } as they are, empty where there are none; nothing was touched.

local current = redis.call('HGET', KEYS[1], 't') or ''
if string.sub(current, 1, 9) == ARGV[1] then
  redis.call('HSET', KEYS[1], 't', ARGV[2])
  return 1
end
if current == ARGV[2] then
  return 1
end
return { current, redis.call('HGET', KEYS[1], 'j') or '' }
