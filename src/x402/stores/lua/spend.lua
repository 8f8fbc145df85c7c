-- Marks a nonce as spent, for as long as its record is kept. Its holder may do so again.
-- KEYS[1]  the nonce's record
-- ARGV[1]  holder, hex
-- Returns  1, or 0 when the holder does not hold the nonce: then nothing changes.
if redis.call('HGET', KEYS[1], 'holder') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'spent', '1')
return 1
