package peer

import (
	"io"
	"testing"
)

// BenchmarkDial is what a new connection costs, until both ends know each other.
func BenchmarkDial(b *testing.B) {
	for kind, security := range kinds(b) {
		b.Run(kind, func(b *testing.B) {
			from, to := start(b, "a", Config{Security: security}), start(b, "b", Config{Security: security})
			for b.Loop() {
				c, _, err := from.Dial(b.Context(), to.Address(), Forward)
				if err != nil {
					b.Fatal(err)
				}
				c.Close()
			}
		})
	}
}

// BenchmarkRoundTrip is what a message of 4 KiB costs there and back.
func BenchmarkRoundTrip(b *testing.B) {
	for kind, security := range kinds(b) {
		b.Run(kind, func(b *testing.B) {
			from, to := start(b, "a", Config{Security: security}), start(b, "b", Config{Security: security})
			c, _, err := from.Dial(b.Context(), to.Address(), Forward)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			message := make([]byte, 4<<10)
			b.SetBytes(int64(len(message)))
			for b.Loop() {
				if _, err := c.Write(message); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, message); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
