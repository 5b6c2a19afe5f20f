package cli

import "strings"

// JoinNegative turns `--flag -1` into `--flag=-1`, up to a "--". No flag begins with a digit, and kong
// would take the number for one.
func JoinNegative(args []string) []string {
	var joined []string
	for i, a := range args {
		if a == "--" {
			return append(joined, args[i:]...)
		}
		last := len(joined) - 1
		negative := len(a) > 1 && a[0] == '-' && a[1] >= '0' && a[1] <= '9'
		if negative && last >= 0 && strings.HasPrefix(joined[last], "--") && !strings.Contains(joined[last], "=") {
			joined[last] += "=" + a
			continue
		}
		joined = append(joined, a)
	}
	return joined
}
