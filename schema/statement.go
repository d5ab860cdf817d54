package schema

// Statement is one DDL statement: *CreateQueue, *AlterQueue, *DropQueue, or
// *Other for everything that does not concern queues.
type Statement interface{ statement() }

// CreateQueue is CREATE QUEUE.
type CreateQueue struct {
	// Queue is the definition; it has passed Validate, and PrimaryKey is never
	// nil.
	Queue       Queue
	IfNotExists bool
}

// DropQueue is DROP QUEUE.
type DropQueue struct {
	Name     string
	IfExists bool
}

// AlterQueue is ALTER QUEUE: one change to one queue.
type AlterQueue struct {
	Name   string
	Change QueueChange
}

// Other is a statement that does not create, alter or drop a queue. Its text
// has not been looked at beyond its first words; it may not even be SQL.
type Other struct {
	SQL string
}

func (*CreateQueue) statement() {}
func (*DropQueue) statement()   {}
func (*AlterQueue) statement()  {}
func (*Other) statement()       {}

// ParseStatement reads one DDL statement in GoogleSQL. A trailing semicolon is
// allowed, a second statement is not.
//
// Only statements that begin with CREATE, ALTER or DROP and then QUEUE are
// read; all others come back as *Other and never as an error. The error for a
// queue statement that cannot be used is a *ParseError.
func ParseStatement(sql string) (Statement, error) {
	p := newParser(sql)
	if !p.isWord(1, "QUEUE") {
		return &Other{SQL: sql}, nil
	}
	var parse func() (Statement, error)
	switch {
	case p.isWord(0, "CREATE"):
		parse = p.createQueue
	case p.isWord(0, "ALTER"):
		parse = p.alterQueue
	case p.isWord(0, "DROP"):
		parse = p.dropQueue
	default:
		return &Other{SQL: sql}, nil
	}
	p.next()
	p.next()
	st, err := parse()
	if err != nil {
		return nil, err
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return st, nil
}
