package remote

import (
	"fmt"
)

// Field is one entry of a map that a server sent.
type Field struct {
	Name  string
	Value any // int64 or string
}

// Fields is such a map, in the order in which it came.
type Fields []Field

// ReadFields reads a map from a reply.
func ReadFields(reply any) (Fields, error) {
	flat, ok := reply.([]any)
	if !ok || len(flat)%2 != 0 {
		return nil, fmt.Errorf("the server sent %.200q, want a map", fmt.Sprint(reply))
	}
	var fields Fields
	for i := 0; i < len(flat); i += 2 {
		name, ok := flat[i].(string)
		if !ok {
			return nil, fmt.Errorf("the server sent a map with the key %.200q", fmt.Sprint(flat[i]))
		}
		fields = append(fields, Field{name, flat[i+1]})
	}
	return fields, nil
}

// Number is the field of that name; 0 where there is none.
func (f Fields) Number(name string) int64 {
	n, _ := f.Value(name).(int64)
	return n
}

// Text is the field of that name; empty where there is none.
func (f Fields) Text(name string) string {
	s, _ := f.Value(name).(string)
	return s
}

// Value is the field of that name; nil where there is none.
func (f Fields) Value(name string) any {
	for _, field := range f {
		if field.Name == name {
			return field.Value
		}
	}
	return nil
}
