// # Rules of the service's queues
//
// What the service documents about queues, and what becomes of it here. Behind "enforced" stand the tests that show it;
// behind "not" the reason.
//
//	rule                                              here       by, or why not
//	Key columns and Payload are all that is declared  enforced   TestF33QueueDDLThatIsRefused
//	DeliverTime is added and may not be declared      enforced   TestF33QueueDDLThatIsRefused
//	Payload is BYTES, STRING, JSON or a proto         enforced   TestQueuePayloadTypes TestQueueProtoPayload
//	Key columns of every type; generated ones         enforced   TestQueueKeyTypes TestQueueGeneratedKeyColumn
//	Not in named schemas                              enforced   TestF33QueueDDLThatIsRefused
//	The grammar, case, quotes, trailing comma         enforced   TestF33QueueDDL TestF33WaysToWriteChanges
//	IF NOT EXISTS, IF EXISTS, DROP and CREATE again   enforced   TestF33MixedBatch TestF32StreamsThroughChanges
//	INTERLEAVE IN PARENT, ON DELETE                   enforced   TestF33MixedBatch TestAlterQueue
//	INTERLEAVE IN without PARENT                      enforced   TestInterleaveInWithoutParent
//	ROW DELETION POLICY                               enforced   TestRowDeletion
//	receive_mode is PULL                              enforced   TestAlterQueue
//	disable_send, disable_delivery                    enforced   TestOptionsTakeEffectAtOnce
//	locality_group                                    not        it is kept and shown; the emulator stores nothing anywhere
//	ALTER QUEUE, every form                           enforced   TestAlterQueue TestInterleaveInWithoutParent
//	100 queues an instance, fewer for a smaller one   enforced   TestAnInstanceHasAHundredQueues TestNumberOfQueues
//	Enterprise editions only                          not        the emulator has no editions
//	The PostgreSQL dialect                            not        UNIMPLEMENTED, since the emulator lacks what it would take
//	A queue reads like a table                        enforced   TestQueueSamples TestRoles
//	UPDATE is not supported                           enforced   TestQueueWritesThatAreRefused
//	INSERT sends; without DeliverTime it is now       enforced   TestQueueSamples TestF11SkewedDatabaseClock
//	Send sends when its transaction commits           enforced   TestQueueSendIsPartOfItsTransaction
//	A key that is there is refused                    enforced   TestQueueResend
//	Payloads below 4 KB are delivered faster          not        all are delivered alike
//	RECEIVE only through ExecuteStreamingSql          enforced   TestQueueStreamMessages
//	RECEIVE only in a strong, single-use read         enforced   TestF32OnlyStrongSingleUseReads
//	Rows come when they are due, while it is open     enforced   TestF32ReceiveWhileTheStreamIsOpen TestF11TimesReadBackExactly
//	It ends after max_duration                        enforced   TestF32EmptyQueueEndsAfterMaxDuration
//	The arguments and their types                     enforced   TestReceiveArguments TestParseDuration
//	WHERE is supported; joins and the rest are not    enforced   TestF33ReceiveStatements TestParseRefuses
//	The columns of a row; true on a batch's last      enforced   TestQueueSamples TestLastOfABatch
//	1,000 receivers with equal arguments a queue      enforced   TestAThousandReceivers
//	2,000 receivers a project                         enforced   TestReceiversOfAProjectAreLimited
//	At least once; no order; no count of deliveries   enforced   TestF32EarlyCloseLeavesTheLeaseToRunOut
//	A lease lasts 10 s                                enforced   TestQueueSamples
//	What is leased is not delivered to others         enforced   TestQueueManyReceivers TestNothingIsLostOrDoubled
//	RENEWLEASE extends, and the old token is dead     enforced   TestQueueSamples TestRenewRotates
//	No row for an unknown or expired token            enforced   TestF32EarlyCloseLeavesTheLeaseToRunOut
//	NULL for a message that was acknowledged          enforced   TestQueueSamples TestRenewOfAGoneMessage
//	One call renews many                              enforced   TestQueueSamples
//	Redelivery with back-off, then hourly             not        Options.Redelivery does it; by default a message is ready again when its lease ends, so that nobody waits
//	An asserted DELETE of nothing is OUT_OF_RANGE     enforced   TestF33AckStatements TestParityWithTheBareEmulator
//	The transaction stays open after that             enforced   TestParityWithTheBareEmulator
//	Ack of nothing is NOT_FOUND, unless ignored       enforced   TestQueueSamples
//	Ack comes before Send of the same key             enforced   TestQueueResend
//	A plain DELETE of nothing is silent               enforced   TestQueueSamples
//	A commit can be asked for its outcome again       enforced   TestFaultsOnCommit
//	Privileges on queues and their functions          enforced   TestRoles TestRolesAreDeclared
//	Privileges on columns are not supported           enforced   TestStatementsThatAreRefused
//	Privileges on everything else                     not        they are kept and shown; the emulator has none
//	Queues and functions in INFORMATION_SCHEMA        not        see below
//	RECEIVE may rest after DROP and CREATE            not        it works at once
//	Metrics of queues                                 not        the emulator has no metrics
//
// In INFORMATION_SCHEMA a queue is a table, with its columns and its key, as on the service. Beside it stand what the
// front keeps it by: the hidden columns SpanqueueGeneration and SpanqueueSentTime, the index spanqueue_sent_<Queue> and
// the table spanqueue_queue_<Queue>, and the table spanqueue_roles once there are roles. ROUTINES, PARAMETERS, ROLES and
// the views of privileges are missing, because the emulator has none of them. GetDatabaseDdl shows queues, roles and grants
// as they were declared, and nothing else.
package front
