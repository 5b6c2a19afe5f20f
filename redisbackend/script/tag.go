package script

import (
	"strconv"
	"strings"
)

// Slots is how many slots a Redis Cluster has.
const Slots = 16384

// Slot is the slot of a Redis Cluster that a key belongs to: CRC16 of its hash tag, or of all of it.
func Slot(key string) int {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if size := strings.IndexByte(key[open+1:], '}'); size > 0 {
			key = key[open+1 : open+1+size]
		}
	}
	return int(crc16(key)) % Slots
}

// crc16 is CRC-16/XMODEM.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// tagOfEachSlot finds a short tag for each slot: the first number, written in base 36, that falls there.
func tagOfEachSlot() []string {
	tags := make([]string, Slots)
	for n, missing := uint64(0), Slots; missing > 0; n++ {
		tag := strconv.FormatUint(n, 36)
		if slot := Slot(tag); tags[slot] == "" {
			tags[slot] = tag
			missing--
		}
	}
	return tags
}

// tagSafe makes a name fit to stand between braces. One that begins with a closing brace would leave
// them empty, which is no tag; a NUL goes before it. So that names stay different, it goes also before
// those that look as if they had one already.
func tagSafe(name string) string {
	if strings.HasPrefix(strings.TrimLeft(name, "\x00"), "}") {
		return "\x00" + name
	}
	return name
}

func tagUnsafe(tag string) string {
	if strings.HasPrefix(tag, "\x00") && strings.HasPrefix(strings.TrimLeft(tag, "\x00"), "}") {
		return tag[1:]
	}
	return tag
}
