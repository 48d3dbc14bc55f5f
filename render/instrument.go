package render

import (
	"strconv"
	"text/template/parse"
)

// instrument rewrites a parsed template so that
//   - every value that it prints goes through the slot function, whatever the
//     author wrote, as html/template does with its escapers;
//   - every piece of its own text, and what prints lines, is marked with its
//     place, so that an error in the output can be told as file and line of the
//     template;
//   - every turn of a loop and every call of a part costs a step, so that a
//     render ends.
func instrument(t *parse.Tree, source string) {
	in := instrumenter{file: t.ParseName, source: source}
	in.list(t.Root)
	before(t.Root, enterFunc)
	t.Root.Nodes = append(t.Root.Nodes, action(leaveFunc, t.Root.Pos))
}

type instrumenter struct{ file, source string }

func (in *instrumenter) list(l *parse.ListNode) {
	if l == nil {
		return
	}
	nodes := make([]parse.Node, 0, len(l.Nodes))
	for _, n := range l.Nodes {
		in.node(n)
		if printsLines(n) {
			text := mark(in.file, lineAt(in.source, int(n.Position())), stays)
			nodes = append(nodes, &parse.TextNode{NodeType: parse.NodeText, Pos: n.Position(), Text: []byte(text)})
		}
		nodes = append(nodes, n)
	}
	l.Nodes = nodes
}

// printsLines reports whether n, which is rewritten, prints lines of its own.
func printsLines(n parse.Node) bool {
	a, ok := n.(*parse.ActionNode)
	if !ok || len(a.Pipe.Decl) > 0 || len(a.Pipe.Cmds) < 2 {
		return false
	}
	last, ok := a.Pipe.Cmds[len(a.Pipe.Cmds)-2].Args[0].(*parse.IdentifierNode) // before the slot function
	return ok && (last.Ident == internal+"indent" || last.Ident == internal+"nindent")
}

func (in *instrumenter) node(n parse.Node) {
	switch n := n.(type) {
	case *parse.TextNode:
		line := lineAt(in.source, int(n.Pos))
		n.Text = append([]byte(mark(in.file, line, "")), n.Text...)
	case *parse.ActionNode:
		if len(n.Pipe.Decl) == 0 {
			structured(n.Pipe.Cmds)
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
		before(n.List, stepFunc)
		in.list(n.ElseList)
	}
}

// structured gives the functions at the end of a printing pipeline the form that
// keeps structure. Anywhere else their result is an ordinary string.
func structured(cmds []*parse.CommandNode) {
	for i := len(cmds) - 1; i >= 0; i-- {
		function, ok := cmds[i].Args[0].(*parse.IdentifierNode)
		if !ok {
			return
		}
		switch function.Ident {
		case "indent", "nindent":
			function.Ident = internal + function.Ident
		case "include", "toJson", "toYaml":
			function.Ident = internal + function.Ident
			return
		default:
			return
		}
	}
}

// before makes each execution of l begin with a call of function.
func before(l *parse.ListNode, function string) {
	l.Nodes = append([]parse.Node{action(function, l.Pos)}, l.Nodes...)
}

func action(function string, pos parse.Pos) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: pos, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: pos, Cmds: []*parse.CommandNode{call(function, pos)},
	}}
}

func call(function string, pos parse.Pos) *parse.CommandNode {
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{
		parse.NewIdentifier(function).SetPos(pos),
	}}
}

// stays ends the mark of what prints all its lines from one of the template.
const stays = "!"

func mark(file string, line int, kind string) string {
	return markStart + file + ":" + strconv.Itoa(line) + kind + markEnd
}
