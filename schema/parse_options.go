package schema

import (
	"maps"
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// options reads ( name = value, ... ). Each option is read by its function,
// and may be given once.
func (p *parser) options(readers map[string]func() error) error {
	if err := p.expect("("); err != nil {
		return err
	}
	seen := map[string]bool{}
	known := "one of the options " + strings.Join(slices.Sorted(maps.Keys(readers)), ", ")
	for {
		name, pos, err := p.ident(known)
		if err != nil {
			return err
		}
		name = strings.ToLower(name)
		read, ok := readers[name]
		switch {
		case !ok:
			return p.errorAt(pos, "expected %s, found %s", known, name)
		case seen[name]:
			return p.errorAt(pos, "the option %s is given twice", name)
		}
		seen[name] = true
		if err := p.expect("="); err != nil {
			return err
		}
		if err := read(); err != nil {
			return err
		}
		if !p.accept(",") {
			return p.expect(")")
		}
	}
}

// queueOptions reads OPTIONS ( ... ) of a queue.
func (p *parser) queueOptions() (SetOptions, error) {
	var set SetOptions
	if err := p.expect("OPTIONS"); err != nil {
		return set, err
	}
	err := p.options(map[string]func() error{
		"receive_mode":     func() error { return p.receiveMode(&set.ReceiveMode) },
		"disable_send":     func() error { return p.boolOption(&set.DisableSend) },
		"disable_delivery": func() error { return p.boolOption(&set.DisableDelivery) },
		"locality_group":   func() error { return p.stringOption(&set.LocalityGroup) },
	})
	return set, err
}

func (p *parser) boolOption(into **bool) error {
	switch {
	case p.accept("TRUE"):
		*into = new(true)
	case p.accept("FALSE"), p.accept("NULL"):
		*into = new(false)
	default:
		return p.expected("TRUE, FALSE or NULL")
	}
	return nil
}

func (p *parser) stringOption(into **string) error {
	t := p.at(0)
	switch {
	case t.Kind == token.TokenString:
		p.next()
		*into = &t.AsString
	case p.accept("NULL"):
		*into = new("")
	default:
		return p.expected("a string or NULL")
	}
	return nil
}

func (p *parser) receiveMode(into **string) error {
	pos := p.at(0).Pos
	if err := p.stringOption(into); err != nil {
		return err
	}
	if m := **into; m != "" && m != ReceiveModePull {
		return p.errorAt(pos, "the only receive mode is '%s', found %q", ReceiveModePull, m)
	}
	return nil
}
