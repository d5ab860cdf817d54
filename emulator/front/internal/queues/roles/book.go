package roles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spanqueue/spanqueue/emulator/front/internal/queues/tvf"
)

// Kinds of objects whose privileges are enforced, as in GRANT.
const (
	OnQueue    = "QUEUE"
	OnFunction = "TABLE FUNCTION"
	// onRole is the kind of a role that is granted to a role.
	onRole = "ROLE"
)

// public is the role that all have.
const public = "public"

// systemRoles exist without CREATE ROLE.
var systemRoles = []string{public, "spanner_info_reader", "spanner_sys_reader"}

// Book has the roles of one database and what is granted to them. It does not change; the zero Book has none. Names are
// equal whatever their case.
type Book struct {
	roles  []string // in the order of their creation
	grants []grant  // in the order in which they were granted
}

// grant is one privilege on one object for one role. For onRole there is no privilege: role has what object has.
type grant struct{ privilege, kind, object, role string }

func (g grant) same(h grant) bool {
	return g.privilege == h.privilege && g.kind == h.kind && strings.EqualFold(g.object, h.object) && strings.EqualFold(g.role, h.role)
}

func (g grant) ddl() string {
	if g.kind == onRole {
		return fmt.Sprintf("GRANT ROLE %s TO ROLE %s", tvf.QuoteNames([]string{g.object}), tvf.QuoteNames([]string{g.role}))
	}
	return fmt.Sprintf("GRANT %s ON %s %s TO ROLE %s", g.privilege, g.kind, tvf.QuoteNames([]string{g.object}), tvf.QuoteNames([]string{g.role}))
}

// Statements creates the roles and grants again, one thing a statement.
func (b Book) Statements() []string {
	var all []string
	for _, r := range b.roles {
		all = append(all, "CREATE ROLE "+tvf.QuoteNames([]string{r}))
	}
	for _, g := range b.grants {
		all = append(all, g.ddl())
	}
	return all
}

// Text is the book in a form that Read reads.
func (b Book) Text() (string, error) {
	text, err := json.Marshal(b.Statements())
	return string(text), err
}

// Read undoes Text.
func Read(text string) (Book, error) {
	var statements []string
	if err := json.Unmarshal([]byte(text), &statements); err != nil {
		return Book{}, fmt.Errorf("roles: %w", err)
	}
	var b Book
	for _, sql := range statements {
		s, ok, err := tvf.ParseRole(sql)
		if err == nil && !ok {
			err = fmt.Errorf("it is no statement about roles")
		}
		if err == nil {
			b, err = b.Apply(s)
		}
		if err != nil {
			return Book{}, fmt.Errorf("roles: %q: %w", sql, err)
		}
	}
	return b, nil
}

// Names are the names of all roles, those of the system first.
func (b Book) Names() []string { return slices.Concat(systemRoles, b.roles) }

// Exists reports whether there is such a role.
func (b Book) Exists(role string) bool {
	return indexFold(b.roles, role) >= 0 || indexFold(systemRoles, role) >= 0
}

// Allows reports whether the role has the privilege on the object, by itself or through others.
func (b Book) Allows(role, privilege, kind, object string) bool {
	for _, has := range b.closure(role) {
		want := grant{privilege, kind, object, has}
		if slices.ContainsFunc(b.grants, want.same) {
			return true
		}
	}
	return false
}

// closure is the role and all whose privileges it has.
func (b Book) closure(role string) []string {
	all := []string{role, public}
	for i := 0; i < len(all); i++ {
		for _, g := range b.grants {
			if g.kind == onRole && strings.EqualFold(g.role, all[i]) && indexFold(all, g.object) < 0 {
				all = append(all, g.object)
			}
		}
	}
	return all
}

// GrantedOn are the roles that have privileges on the object.
func (b Book) GrantedOn(kind, object string) []string {
	var roles []string
	for _, g := range b.grants {
		if g.kind == kind && strings.EqualFold(g.object, object) && indexFold(roles, g.role) < 0 {
			roles = append(roles, g.role)
		}
	}
	return roles
}

func indexFold(list []string, name string) int {
	return slices.IndexFunc(list, func(s string) bool { return strings.EqualFold(s, name) })
}
