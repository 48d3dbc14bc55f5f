package render

import (
	"strconv"
	"text/template/parse"
)

// instrument rewrites a parsed template so that
//   - every value that it prints goes through the slot function, whatever the
//     author wrote, as html/template does with its escapers;
//   - every piece of its own text is marked with its place, so that an error
//     in the output can be told as file and line of the template;
//   - every turn of a loop and every call of a part costs a step, so that a
//     render ends.
func instrument(t *parse.Tree, source string) {
	in := instrumenter{file: t.ParseName, source: source}
	in.list(t.Root)
	in.count(t.Root)
}

type instrumenter struct{ file, source string }

func (in *instrumenter) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		in.node(n)
	}
}

func (in *instrumenter) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.TextNode:
		line := lineAt(in.source, int(n.Pos))
		n.Text = append([]byte(mark(in.file, line)), n.Text...)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			n.Pipe.Cmds = append(n.Pipe.Cmds, call(slotFunc, n.Pos))
		}
	case *parse.IfNode:
		in.list(n.List)
		in.list(n.ElseList)
	case *parse.WithNode:
		in.list(n.List)
		in.list(n.ElseList)
	case *parse.RangeNode:
		in.list(n.List)
		in.count(n.List)
		in.list(n.ElseList)
	}
}

// count makes each execution of l cost a step.
func (in *instrumenter) count(l *parse.ListNode) {
	step := &parse.ActionNode{NodeType: parse.NodeAction, Pos: l.Pos, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: l.Pos, Cmds: []*parse.CommandNode{call(stepFunc, l.Pos)},
	}}
	l.Nodes = append([]parse.Node{step}, l.Nodes...)
}

func call(function string, pos parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{
		parse.NewIdentifier(function).SetPos(pos),
	}}
}

// Characters of Unicode's private use area frame slots and marks. A template
// that holds one is refused, and no value is ever printed, so they cannot be
// forged.
const (
	slotStart = "\uE000"
	slotEnd   = "\uE001"
	markStart = "\uE002"
	markEnd   = "\uE003"
	reserved  = slotStart + slotEnd + markStart + markEnd
)

func mark(file string, line int) string {
	return markStart + file + ":" + strconv.Itoa(line) + markEnd
}
