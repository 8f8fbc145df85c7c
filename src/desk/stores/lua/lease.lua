-- Takes or renews a lease, by Redis's own clock.
--
-- KEYS[1]  the lease: its owner, gone when it ran out
-- ARGV[1]  who asks
-- ARGV[2]  for how long, milliseconds
--
-- Returns 1 when it is the caller's; 0 while another's lasts, and then nothing was touched.

local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
