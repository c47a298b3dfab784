/*
 * Accounts, and a history of the last transfers, in a pool that is kept compact all the time.
 *
 *   bank POOL run SEED      transfers until it is stopped, and prints the number of each that is durable
 *   bank POOL audit         checks everything, and prints how many transfers there were
 *
 * Stop it at any moment, with `kill -9` if you like: no transfer that it has printed is lost, none is half done.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <firn.h>

enum { ACCOUNTS = 32, HISTORY = 600, FUNDS = 1000 };

struct transfer {
	firn_ref before;
	uint64_t number;
	int64_t amount;
	uint32_t from, to;
	char note[96];
};
FIRN_LAYOUT(transfer_type, struct transfer, "transfer", 1, (before, transfer_type), (number), (amount), (from), (to),
	    (note));

struct bank {
	/* The newest transfers; each knows the one before it. */
	firn_ref history[HISTORY / 20];
	uint64_t transfers;
	int64_t accounts[ACCOUNTS];
};
FIRN_LAYOUT(bank_type, struct bank, "bank", 1, (history, transfer_type), (transfers), (accounts));

static void check(firn_status status)
{
	if (status != FIRN_OK) {
		fprintf(stderr, "bank: %s\n", firn_last_message());
		exit(1);
	}
}

static firn_status found(firn_session *session, void *unused)
{
	(void)unused;
	struct bank front;
	memset(&front, 0, sizeof front);
	for (int i = 0; i < ACCOUNTS; i++)
		front.accounts[i] = FUNDS;
	return firn_set_root(session, "bank", firn_alloc(session, &bank_type, &front));
}

static firn_status transfer(firn_session *session, void *argument)
{
	unsigned *seed = argument;
	const struct bank *bank = firn_root(session, "bank", &bank_type);
	if (bank == NULL)
		return firn_last_status();
	uint64_t number = FIRN_LOAD(session, bank, transfers) + 1;
	struct transfer front = {
		.number = number,
		.amount = rand_r(seed) % 100,
		.from = (uint32_t)rand_r(seed) % ACCOUNTS,
		.to = (uint32_t)rand_r(seed) % ACCOUNTS,
	};
	snprintf(front.note, sizeof front.note, "transfer %" PRIu64, number);
	/* A chain is cut now and then: what hangs on it is reclaimed by the collector. */
	size_t chain = offsetof(struct bank, history) + number % (HISTORY / 20) * sizeof(firn_ref);
	const struct transfer *last =
		firn_follow(session, (const firn_ref *)(const void *)((const char *)(const void *)bank + chain));
	if (rand_r(seed) % 20 != 0)
		front.before = firn_reference(session, last);
	const void *entry = firn_alloc(session, &transfer_type, &front);
	check(firn_link(session, bank, chain, entry));
	int64_t accounts[ACCOUNTS];
	check(firn_load(session, bank, offsetof(struct bank, accounts), accounts, sizeof accounts));
	accounts[front.from] -= front.amount;
	accounts[front.to] += front.amount;
	/* Sometimes a part of it is tried, and taken back. */
	if (number % 7 == 0) {
		check(firn_tx_begin(session));
		int64_t nothing[ACCOUNTS] = {0};
		check(firn_store(session, bank, offsetof(struct bank, accounts), nothing, sizeof nothing));
		check(firn_tx_abort(session));
	}
	check(firn_store(session, bank, offsetof(struct bank, accounts), accounts, sizeof accounts));
	return FIRN_STORE(session, bank, transfers, number);
}

static void finding(uint64_t at, const char *what, void *argument)
{
	(void)argument;
	fprintf(stderr, "bank: %#" PRIx64 ": %s\n", at, what);
}

static void audit(firn_pool *pool, firn_session *session)
{
	check(firn_read_begin(session));
	const struct bank *bank = firn_root(session, "bank", &bank_type);
	if (bank == NULL)
		check(firn_last_status());
	int64_t sum = 0;
	for (int i = 0; i < ACCOUNTS; i++)
		sum += bank->accounts[i];
	uint64_t transfers = bank->transfers;
	int is_right = sum == (int64_t)ACCOUNTS * FUNDS;
	for (int chain = 0; chain < HISTORY / 20; chain++) {
		uint64_t before = UINT64_MAX;
		const struct transfer *entry = FIRN_FOLLOW(session, bank, history[chain]);
		for (; entry != NULL; entry = FIRN_FOLLOW(session, entry, before)) {
			char note[96];
			snprintf(note, sizeof note, "transfer %" PRIu64, entry->number);
			is_right &= strcmp(note, entry->note) == 0 && entry->number < before &&
				    entry->number <= transfers && entry->number % (HISTORY / 20) == (uint64_t)chain;
			before = entry->number;
		}
	}
	check(firn_read_end(session));
	size_t findings = 0;
	check(firn_check(pool, finding, NULL, &findings));
	if (!is_right || findings > 0) {
		fprintf(stderr, "bank: the books are wrong after %" PRIu64 " transfers: %" PRId64 " in all\n", transfers,
			sum);
		exit(1);
	}
	printf("%" PRIu64 "\n", transfers);
}

int main(int count, char **arguments)
{
	if (count < 3) {
		fprintf(stderr, "usage: %s POOL run SEED | audit\n", arguments[0]);
		return 2;
	}
	firn_pool *pool;
	firn_session *session;
	firn_status opened = firn_open(arguments[1], NULL, &pool);
	if (opened == FIRN_NOT_FOUND || opened == FIRN_NOT_A_POOL) {
		/* It was stopped before there was a pool. */
		unlink(arguments[1]);
		opened = firn_create(arguments[1], NULL, &pool);
	}
	check(opened);
	check(firn_session_open(pool, &session));
	check(firn_read_begin(session));
	int is_new = firn_root(session, "bank", &bank_type) == NULL;
	check(firn_read_end(session));
	if (is_new)
		check(firn_transaction(session, found, NULL));
	if (strcmp(arguments[2], "audit") == 0) {
		audit(pool, session);
	} else {
		firn_collecting how = {.trigger = 1.06, .target = 1.02, .pages = FIRN_SMALL_PAGES, .least_bytes = 1,
				       .interval_us = 200};
		unsigned seed = count > 3 ? (unsigned)atoi(arguments[3]) : 1;
		check(firn_init(pool, &how));
		for (;;) {
			check(firn_transaction(session, transfer, &seed));
			check(firn_read_begin(session));
			const struct bank *bank = firn_root(session, "bank", &bank_type);
			printf("%" PRIu64 "\n", bank->transfers);
			fflush(stdout);
			check(firn_read_end(session));
		}
	}
	check(firn_session_close(session));
	check(firn_close(pool));
	return 0;
}
