package link

import "github.com/semserver/semserver/redisbackend/script"

// Call and Script are those of package script.
type (
	Call   = script.Call
	Script = script.Script
)
