// Package workload holds the words of the domain: what a caller asks for
// (Spec), what can be seen of it (State), how things are named, and what can
// go wrong (Error). It knows no transport, no cluster and no template.
package workload
