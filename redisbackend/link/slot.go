package link

import "strings"

// slots is how many parts a Redis Cluster divides its keys into.
const slots = 16384

// slotOf is the slot of a key: what counts is the part in its first pair of braces, if that is not empty.
func slotOf(key string) int {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(rest, "}"); ok && tag != "" {
			key = tag
		}
	}
	return int(crc16(key)) % slots
}

// crc16 is the CRC of XMODEM.
func crc16(text string) uint16 {
	var crc uint16
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
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
