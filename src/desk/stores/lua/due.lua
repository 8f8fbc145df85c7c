-- Streams whose time or Pulse has come.
--
-- KEYS[1]  sorted set: streams by due time, milliseconds
-- KEYS[2]  sorted set: streams by last Pulse
-- ARGV[1]  now, milliseconds, as text
-- ARGV[2]  the Pulse up to which a last Pulse counts as near, as text
-- ARGV[3]  the most to return of each kind
--
-- Returns ids, those due for both reasons twice. Reads only.

local streams = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, stream in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])) do
  streams[#streams + 1] = stream
end
return streams
