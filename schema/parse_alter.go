package schema

// alterQueue reads what follows ALTER QUEUE.
func (p *parser) alterQueue() (Statement, error) {
	name, _, err := p.objectName("the queue's name")
	if err != nil {
		return nil, err
	}
	change, err := p.queueChange()
	if err != nil {
		return nil, err
	}
	return &AlterQueue{Name: name, Change: change}, nil
}

func (p *parser) queueChange() (QueueChange, error) {
	switch {
	case p.accept("SET", "ON", "DELETE"):
		d, err := p.onDelete()
		return SetOnDelete{OnDelete: d}, err
	case p.isWord(0, "SET") && p.isWord(1, "OPTIONS"):
		p.next()
		set, err := p.queueOptions()
		return set, err
	case p.isWord(0, "SET") && p.isWord(1, "INTERLEAVE"):
		p.next()
		i, _, err := p.interleave()
		return SetInterleave{Interleave: i}, err
	case p.accept("DROP", "ROW", "DELETION", "POLICY"):
		return DropRowDeletion{}, nil
	case p.accept("ADD"):
		r, _, err := p.rowDeletion()
		return AddRowDeletion{RowDeletion: r}, err
	case p.accept("REPLACE"):
		r, _, err := p.rowDeletion()
		return ReplaceRowDeletion{RowDeletion: r}, err
	}
	return nil, p.expected("SET OPTIONS, SET ON DELETE, SET INTERLEAVE IN, or ADD, REPLACE or DROP and then ROW DELETION POLICY")
}

// dropQueue reads what follows DROP QUEUE.
func (p *parser) dropQueue() (Statement, error) {
	ifExists := p.accept("IF", "EXISTS")
	name, _, err := p.objectName("the queue's name")
	if err != nil {
		return nil, err
	}
	return &DropQueue{Name: name, IfExists: ifExists}, nil
}
