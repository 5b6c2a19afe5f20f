-- sweep.lua clears away what clients who work by hand leave behind in what is ours: records whose members
-- they took out. And it puts members back that were lost with the ZSET.

-- sweep looks at a portion of the records, from where the last one ended.
local function sweep()
  if ours == 0 then return end
  local page = call('HSCAN', G, string.format('%.0f', swept), 'COUNT', PORTION)
  swept = tonumber(page[1])
  for i = 1, #page[2], 2 do
    local g = load(page[2][i], page[2][i + 1])
    local score = call('ZSCORE', Z, g.member)
    score = score and tonumber(score)
    if score ~= g.score and (score or not restore(g)) then
      if now > g.ends and g.flags < PAROLE then
        expirations = expirations + 1
        held_ms = held_ms + math.max(0, g.ends - g.granted)
      end
      bury(g, score)
    end
  end
  if swept == 0 then lost = 0 end
  more = more or lost > 0
end
