// Package roles keeps the database roles of a database, since the emulator has none, and answers what a role may do
// with queues. It is pure: it turns statements into a Book, and a Book into text that can be stored.
//
// # Terms
//
// A grant is one privilege on one object for one role. A role also has what is granted to the roles that were granted to
// it, and to the role public. The roles public, spanner_info_reader and spanner_sys_reader exist from the beginning.
//
// # What is enforced
//
// Whether a role exists, and the privileges on queues and on their two functions. Grants on anything else are kept and
// shown, and nobody asks for them: the emulator lets every role do everything with tables.
//
// # How they are kept
//
// A Book is stored as the DEFAULT of the one column of the table spanqueue_roles, as the declarations of queues are: it
// changes together with the schema, and a new front before a running emulator reads it.
package roles
