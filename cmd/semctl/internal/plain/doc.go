// Package plain writes for people what came from strangers or from a clock.
//
// Names, holders and labels may be any bytes. Written to a terminal as they are they could move its
// cursor or fake a line, so Text quotes them where they are not plain.
//
// To add a form, add a function that returns a string in which nothing but printable text can be.
package plain
