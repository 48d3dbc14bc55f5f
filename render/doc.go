// Package render turns a workload into Kubernetes manifests. It is a pure
// function of its input: the same Input and the same Set give the same bytes.
//
// The stages, a file each: Input (all that a template can see) -> execute
// (templates to text, in which every value is a slot) -> decode (text to
// objects, slots to values) -> check (strict, by the kind's own types) -> seal
// (what no template may decide).
//
// No string of a request ever meets the YAML parser. A template's output holds
// a slot for each value; the parser sees slots, and the values go into the
// tree that it built. So no value can add a key, an item or an object.
package render
