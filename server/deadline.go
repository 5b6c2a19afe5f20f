package server

import "time"

// The runtime takes a lock and moves a timer whenever a deadline is set, which costs as much as parsing
// a command. The deadlines of a busy connection are therefore left as they are while they are nearly
// right, and set where that makes a difference.

// within returns a deadline for what may take so long from now: the one in force, if it comes less than
// an eighth too early and not too late.
func within(patience time.Duration, now, inForce time.Time) time.Time {
	if left := inForce.Sub(now); left > patience || left <= patience-patience/8 {
		return now.Add(patience)
	}
	return inForce
}

// setReadDeadline makes reads fail from a deadline on.
func (c *conn) setReadDeadline(deadline time.Time) {
	if deadline != c.readBy {
		c.readBy = deadline
		c.net.SetReadDeadline(deadline)
	}
}

// renewWriteDeadline gives the next write the time that writes may take.
func (c *conn) renewWriteDeadline() {
	patience := c.server.cfg.WriteTimeout
	if patience == 0 {
		return
	}
	if by := within(patience, time.Now(), c.writeBy); by != c.writeBy {
		c.writeBy = by
		c.net.SetWriteDeadline(by)
	}
}
