-- open.lua opens the books of one semaphore, for the scripts that it stands in front of. It makes no
-- functions: in Redis they are made anew in each call, and that is dear.
--
-- KEYS  1 permits  2 holders  3 meta  4 grants  5 slots  6 ends  7 registry
-- ARGV  1 <ddd  not_after, serial, floor: see Stamp
--       2 the calling server
-- A script that comes too late, or after a later one of its server, replies {0, now} and does nothing.
--
-- meta: capacity; state (STATE, below); settings "lease maxlease maxhold quarantine idle born", in ms, 0
-- where one is not in force; line (see line.lua); @server: <dd serial and time of the last call of that
-- server, then the tickets of the releases that took effect in it, each followed by a space.
-- Without a capacity there is no semaphore; last and deleted may then tell of one that was removed.
--
-- In the books, card permits are members of the ZSET, list are elements of the List, and spare are
-- permits that this call has freed and not yet put anywhere.

local call, pack, take_apart = redis.call, struct.pack, struct.unpack
local L, Z, M, G, S, E, R = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local MARK, NEVER = '\0semserver:', math.huge
local MOST, MOST_PERMITS = 100000, 1000 -- capacity; permits of one holder
local PORTION = 500                     -- ended leases that are processed at once
local STATE = '<dddddddddddddddddddd'
local RECORD = '<ddddddBBc0I2c0I2c0'
local WAITED, RENEWAL, PAROLE = 1, 2, 4 -- flags of a grant

-- What is said of a request; refusal.go has the words.
local NO, YES, GRANTED, REPLAYED, JOINS, NUMBER = 0, 1, 2, 3, 4, 5
local NOSEM, CONFLICT, TOOMANY, ABOVE_MAXLEASE, MAXLEASE_SET, MAXHOLD_SET, PERMITS, CAPACITY = 6, 7, 8, 9, 10, 11, 12, 13
local SEMAPHORES, NO_MEMORY, IN_USE, EXISTS, SETTINGS = 14, 15, 16, 17, 18

local clock = call('TIME')
local micros = clock[1] * 1000000 + clock[2]
local now = math.floor(micros / 1000)
local not_after, serial, seen = take_apart('<ddd', ARGV[1])
local server = ARGV[2]
if now > not_after then return {0, now} end

local meta = call('HMGET', M, 'capacity', 'state', 'settings', 'line', server)
local list, card = call('LLEN', L), call('ZCARD', Z)
local spare, more = 0, false
local cap = tonumber(meta[1])

local again, notes = false, '' -- again: this very call has been made before
if meta[5] then
  local latest = take_apart('<d', meta[5])
  if latest > serial then return {0, now} end
  again, notes = latest == serial, string.sub(meta[5], 17)
end

-- state: the latest token; all slots from mark on are free, and gaps below it; hand-overs in a row; when
-- the semaphore was last used; permits in quarantine, further permits of grants, permits that have
-- records; how far the records have been swept, and whether members are being put back because the ZSET
-- was lost; then the counters.
local last, mark, gaps, streak, used, paroled, extras, ours, swept, lost = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
local immediate, late, refused, timeouts, wait_ms = 0, 0, 0, 0, 0
local releases, renewals, expirations, reconciled, held_ms = 0, 0, 0, 0, 0
if cap and meta[2] then
  last, mark, gaps, streak, used, paroled, extras, ours, swept, lost, immediate, late, refused, timeouts,
  wait_ms, releases, renewals, expirations, reconciled, held_ms = take_apart(STATE, meta[2])
  -- A raw release of the last holder leaves one permit more in the List than the loss of the ZSET does.
  if card == 0 and ours > 0 and list + ours <= cap then lost, swept = 1, 0 end
end

local s_lease, s_max, s_hold, s_quarantine, s_idle, born = 0, 0, 0, 0, 0, 0
if cap and meta[3] then
  s_lease, s_max, s_hold, s_quarantine, s_idle, born = string.match(meta[3], '(%d+) (%d+) (%d+) (%d+) (%d+) (%d)')
  s_lease, s_max, s_hold = tonumber(s_lease), tonumber(s_max), tonumber(s_hold)
  s_quarantine, s_idle, born = tonumber(s_quarantine), tonumber(s_idle), tonumber(born)
end
