/* Commits at each level to a pool with a log, and waits for tickets; a child that is killed loses nothing durable. */
#include <firn.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct number {
	uint64_t value;
};
FIRN_LAYOUT(number_type, struct number, "number", 1, (value));

static void check(firn_status status)
{
	if (status != FIRN_OK) {
		fprintf(stderr, "%s: %s\n", firn_status_name(status), firn_last_message());
		exit(1);
	}
}

static void expect(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "not so: %s\n", what);
		exit(1);
	}
}

static firn_pool *opened(const char *path, firn_domain domain, firn_level level)
{
	firn_pool *pool;
	firn_options options = {.domain = domain, .level = level, .group_ms = 3600000};
	check(firn_open(path, &options, &pool));
	return pool;
}

static uint64_t value(firn_pool *pool)
{
	firn_session *session;
	check(firn_session_open(pool, &session));
	check(firn_read_begin(session));
	const struct number *found = firn_root(session, "number", &number_type);
	uint64_t value = found == NULL ? 0 : FIRN_LOAD(session, found, value);
	check(firn_read_end(session));
	check(firn_session_close(session));
	return value;
}

/* Sets the value, and returns the ticket of that. */
static firn_ticket set(firn_pool *pool, uint64_t value)
{
	firn_session *session;
	firn_ticket ticket;
	struct number number = {value};
	check(firn_session_open(pool, &session));
	check(firn_tx_begin(session));
	check(firn_set_root(session, "number", firn_alloc(session, &number_type, &number)));
	check(firn_tx_commit_deferred(session, &ticket));
	check(firn_session_close(session));
	return ticket;
}

/* In a child, which is killed: the first value is durable. */
static void killed(const char *path, uint64_t durable, uint64_t lost)
{
	pid_t child = fork();
	if (child == 0) {
		firn_pool *pool = opened(path, FIRN_AS_IT_IS, FIRN_GROUP);
		check(firn_wait_durable(pool, set(pool, durable)));
		set(pool, lost);
		raise(SIGKILL);
	}
	int status;
	expect(waitpid(child, &status, 0) == child && WIFSIGNALED(status), "the child was killed");
}

static firn_ticket called[2];
static int calls;

static void durable_now(void *ticket, firn_status status)
{
	expect(status == FIRN_OK && calls < 2, "each ticket becomes durable once");
	called[calls++] = *(firn_ticket *)ticket;
}

/* Nobody waits, and both calls have come when the pool is closed. */
static void calls_back(const char *path)
{
	firn_pool *pool = opened(path, FIRN_LOGGED, FIRN_GROUP);
	firn_ticket tickets[2];
	for (unsigned i = 0; i < 2; i++) {
		tickets[i] = set(pool, 300 + i);
		check(firn_when_durable(pool, tickets[i], durable_now, &tickets[i]));
	}
	expect(firn_when_durable(pool, tickets[0], NULL, NULL) == FIRN_INVALID, "nothing is no call");
	check(firn_close(pool));
	expect(calls == 2 && called[0] == tickets[0] && called[1] == tickets[1], "calls come in order");
}

int main(int count, char **words)
{
	if (count != 2)
		return 2;
	firn_pool *pool;
	firn_options options = {.domain = FIRN_LOGGED, .level = (firn_level)3};
	expect(firn_create(words[1], &options, &pool) == FIRN_INVALID, "there are three levels");
	options = (firn_options){.domain = FIRN_LOGGED};
	check(firn_create(words[1], &options, &pool));
	check(firn_wait_durable(pool, set(pool, 1)));
	check(firn_close(pool));

	for (uint64_t level = FIRN_SYNC; level <= FIRN_GROUP; level++) {
		pool = opened(words[1], FIRN_AS_IT_IS, (firn_level)level);
		expect(value(pool) == level + 1, "the value is that of the last time");
		firn_ticket ticket = set(pool, level + 2);
		expect(firn_newest_ticket(pool) >= ticket, "no ticket is newer than the newest");
		check(firn_wait_durable(pool, ticket));
		expect(firn_durable_ticket(pool) >= ticket, "what was waited for is durable");
		check(firn_close(pool));
	}
	killed(words[1], 100, 200);
	firn_status refused = firn_open(words[1], &(firn_options){.domain = FIRN_PROCESS}, &pool);
	expect(refused != FIRN_OK, "a pool that was not closed stays in its domain");
	pool = opened(words[1], FIRN_AS_IT_IS, FIRN_SYNC);
	expect(value(pool) == 100 || value(pool) == 200, "what was waited for survives");
	check(firn_close(pool));

	pool = opened(words[1], FIRN_PROCESS, FIRN_SYNC);
	check(firn_wait_durable(pool, set(pool, 300)));
	check(firn_close(pool));
	pool = opened(words[1], FIRN_AS_IT_IS, FIRN_SYNC);
	expect(value(pool) == 300, "a closed pool changes its domain");
	check(firn_close(pool));
	calls_back(words[1]);
	expect(firn_newest_ticket(NULL) == 0 && firn_durable_ticket(NULL) == 0, "no pool has no ticket");
	expect(firn_wait_durable(NULL, 0) == FIRN_INVALID, "no pool has nothing to wait for");
	puts("done");
	return 0;
}
