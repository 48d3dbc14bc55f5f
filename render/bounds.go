package render

// Bounds of one render. They are far above what a Pod can be: etcd takes
// 1.5 MiB for an object.
const (
	// maxOutput bounds every text that a template makes, in bytes.
	maxOutput = 4 << 20
	// maxWork bounds what a render handles in all, in bytes.
	maxWork = 32 << 20
	// stepWork is what a turn of a loop or the call of a part or function
	// counts for, so that a render has about a hundred thousand of them.
	stepWork = 256
	// valueWork is what a value counts for beside its text, nestWork what a
	// list or a map does.
	valueWork = 32
	nestWork  = 128
	// maxDepth bounds parts within parts, and values within values.
	maxDepth = 64
)

// problem is an error whose text holds no value of a request.
type problem string

func (p problem) Error() string { return string(p) }

// Problems of a template without end.
const (
	tooMuchWork   = problem("the template does more than a render may; is there a loop without end?")
	tooMuchOutput = problem("the template makes a text of more than 4 MiB")
	tooDeep       = problem("the template nests its parts or values deeper than 64")
)

// budget counts what a render has done. Everything that can be repeated or can
// grow spends from it, so that every render ends.
type budget struct {
	// full is set once an output was cut off: then nothing more can be spent.
	full    error
	spent   int
	parts   int
	nesting int
}

func (b *budget) spend(bytes int) error {
	if b.full != nil {
		return b.full
	}
	b.spent += bytes
	if b.spent > maxWork {
		return tooMuchWork
	}
	return nil
}

// grow spends bytes that are to become one text.
func (b *budget) grow(bytes int) error {
	if bytes > maxOutput {
		return tooMuchOutput
	}
	return b.spend(bytes)
}

// step pays for one turn of a loop.
func (b *budget) step() (text, error) { return "", b.spend(stepWork) }

// enter pays for one execution of a part; leave ends it.
func (b *budget) enter() (text, error) {
	if b.parts++; b.parts > maxDepth {
		return "", tooDeep
	}
	return b.step()
}

func (b *budget) leave() text {
	b.parts--
	return ""
}
