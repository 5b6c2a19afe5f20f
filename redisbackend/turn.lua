-- turn.lua takes, keeps or gives up a turn that one server at a time has.
--
-- KEYS  1 the turn: the server that has it
-- ARGV  1 the calling server   2 for how long, in ms; 0: it gives the turn up
-- Reply 1: the calling server has the turn until then · 0: it does not
--
-- Whoever has a turn and does not keep it loses it when its time is over; nobody else can take it before.

local has = redis.call('GET', KEYS[1])
if has and has ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
