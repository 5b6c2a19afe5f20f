package cli

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// Parse reads a time with its units.
func Parse(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil {
		return d, nil
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return 0, fmt.Errorf("%s: a duration needs a unit, such as %[1]ss", text)
	}
	return 0, fmt.Errorf("%q is no duration; 300ms, 5s and 1h30m are", text)
}

// Durations makes a parser of flags read durations by Parse.
func Durations() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(decode))
}

func decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("duration")
	if err != nil {
		return err
	}
	d, err := Parse(fmt.Sprint(token.Value))
	if err != nil {
		return err
	}
	target.SetInt(int64(d))
	return nil
}
