-- Ends a lease, if it is the caller's.
--
-- KEYS[1]  the lease: its owner
-- ARGV[1]  who asks
--
-- Returns 1 when it ended; 0 when it was another's or none, and then nothing was touched.

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('DEL', KEYS[1])
return 1
