// Leases, on an emulator where they are short.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {Queue, openDatabase} from './database.mjs';

const lease = 1000;
let db, database;
before(async () => { db = await openDatabase([], '--lease', `${lease}ms`); database = db.database; });
after(() => db?.close());

test('a message comes again when its lease has ended', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  await queue.send(1, 'x');
  const first = await open.next();
  const again = await open.next(5 * lease);
  assert.equal(again.Id, 1);
  assert.notEqual(again.SpannerLeaseToken, first.SpannerLeaseToken);
  assert.ok(Date.now() >= new Date(first.SpannerLeaseExpirationTimestamp).getTime(), 'it came while it was leased');
  assert.deepEqual(await queue.renew(first.SpannerLeaseToken), [], 'the token of the first delivery is dead');
});

test('a message whose lease is renewed does not come again', async t => {
  const queue = await Queue.create(t, database);
  const open = queue.receive();
  await queue.send(1, 'x');
  const message = await open.next();
  let token = message.SpannerLeaseToken, expires = new Date(message.SpannerLeaseExpirationTimestamp);
  for (let i = 0; i < 4; i++) {
    await open.none(lease / 2);
    const renewed = await queue.renew(token, 'not a token');
    assert.equal(renewed.length, 1, 'what is no token has no row');
    const [row] = renewed;
    assert.equal(row.SpannerOldLeaseToken, token);
    assert.ok(row.SpannerNewLeaseToken && row.SpannerNewLeaseToken !== token, 'a renewal rotates the token');
    assert.ok(new Date(row.SpannerLeaseExpirationTimestamp) > expires, 'a renewal extends the lease');
    assert.deepEqual(await queue.renew(token), [], 'the old token is dead');
    token = row.SpannerNewLeaseToken;
    expires = new Date(row.SpannerLeaseExpirationTimestamp);
  }
  await queue.ack(1);
  const [row] = await queue.renew(token);
  assert.equal(row.SpannerNewLeaseToken, null, 'the message was acknowledged');
});

test('a receive query ends by itself when its duration is over', async t => {
  const queue = await Queue.create(t, database);
  const opened = Date.now();
  assert.equal(await queue.receive('1s').end(), undefined);
  assert.ok(Date.now() - opened >= 900, 'it ended early');
});
