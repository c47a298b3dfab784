/*
 * Calls that are wrong where they are made, in a child each: either library stops the process.
 *
 *   stopped FOLDER
 */
#include <libpmemobj.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static PMEMobjpool *pop;
static PMEMoid object;
static char path[512];

static void never(PMEMobjpool *of, enum pobj_tx_stage stage, void *arg)
{
	(void)of;
	(void)stage;
	(void)arg;
}

static void makes(int call)
{
	char *bytes = pmemobj_direct(object);
	switch (call) {
	case 0: pmemobj_tx_alloc(64, 1); break;
	case 1: pmemobj_tx_zalloc(64, 1); break;
	case 2: pmemobj_tx_xalloc(64, 1, POBJ_XALLOC_NO_ABORT); break;
	case 3: pmemobj_tx_realloc(object, 128, 1); break;
	case 4: pmemobj_tx_zrealloc(object, 128, 1); break;
	case 5: pmemobj_tx_strdup("text", 1); break;
	case 6: pmemobj_tx_xstrdup("text", 1, POBJ_XALLOC_NO_ABORT); break;
	case 7: pmemobj_tx_wcsdup(L"text", 1); break;
	case 8: pmemobj_tx_xwcsdup(L"text", 1, POBJ_XALLOC_NO_ABORT); break;
	case 9: pmemobj_tx_free(object); break;
	case 10: pmemobj_tx_xfree(object, POBJ_XFREE_NO_ABORT); break;
	case 11: pmemobj_tx_add_range(object, 0, 8); break;
	case 12: pmemobj_tx_xadd_range(object, 0, 8, POBJ_XADD_NO_ABORT); break;
	case 13: pmemobj_tx_add_range_direct(bytes, 8); break;
	case 14: pmemobj_tx_xadd_range_direct(bytes, 8, POBJ_XADD_NO_ABORT); break;
	case 15: pmemobj_tx_lock(TX_PARAM_MUTEX, bytes); break;
	case 16: pmemobj_tx_xlock(TX_PARAM_MUTEX, bytes, POBJ_XLOCK_NO_ABORT); break;
	case 17: pmemobj_tx_commit(); break;
	case 18: pmemobj_tx_abort(ECANCELED); break;
	case 19: pmemobj_tx_set_user_data(NULL); break;
	case 20: (void)pmemobj_tx_get_user_data(); break;
	case 21: pmemobj_tx_set_failure_behavior(POBJ_TX_FAILURE_RETURN); break;
	case 22: (void)pmemobj_tx_get_failure_behavior(); break;
	}
}

#define CALLS 23

static void outside(int call)
{
	makes(call);
}

static void in_onabort(int call)
{
	TX_BEGIN(pop)
	{
		pmemobj_tx_abort(ECANCELED);
	}
	TX_ONABORT
	{
		makes(call);
	}
	TX_END
}

static void in_finally(int call)
{
	TX_BEGIN(pop)
	{
	}
	TX_FINALLY
	{
		makes(call);
	}
	TX_END
}

static void begins(int where)
{
	if (where == 0) {
		TX_BEGIN(pop)
		{
			pmemobj_tx_abort(ECANCELED);
		}
		TX_ONABORT
		{
			TX_BEGIN(pop)
			{
			}
			TX_END
		}
		TX_END
	} else if (where == 1) {
		TX_BEGIN(pop)
		{
		}
		TX_FINALLY
		{
			TX_BEGIN(pop)
			{
			}
			TX_END
		}
		TX_END
	} else if (where == 2) {
		TX_BEGIN_CB(pop, never, NULL)
		{
			TX_BEGIN_CB(pop, never, &pop)
			{
			}
			TX_END
		}
		TX_END
	} else if (where == 3) {
		pmemobj_tx_end();
	} else if (where == 4) {
		pmemobj_tx_process();
	} else {
		jmp_buf nowhere;
		memset(&nowhere, 0, sizeof nowhere);
		pmemobj_tx_begin(pop, nowhere, TX_PARAM_NONE);
		pmemobj_tx_end();
	}
}

static int is_stopped(void (*work)(int), int argument)
{
	pid_t child = fork();
	int status;
	if (child == 0) {
		if (freopen("/dev/null", "w", stderr) == NULL)
			_exit(3);
		pop = pmemobj_open(path, "x");
		object = pmemobj_root(pop, 64);
		if (OID_IS_NULL(object))
			_exit(4);
		work(argument);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		exit(1);
	if (WIFEXITED(status) && WEXITSTATUS(status) > 2)
		exit(1);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void all(const char *where, void (*work)(int), int count)
{
	int stopped = 0;
	for (int i = 0; i < count; i++)
		if (is_stopped(work, i))
			stopped++;
		else
			printf("%s: %d goes on\n", where, i);
	printf("%s: %d of %d stopped\n", where, stopped, count);
}

int main(int count, char **arguments)
{
	if (count != 2)
		return 2;
	snprintf(path, sizeof path, "%s/pool", arguments[1]);
	pop = pmemobj_create(path, "x", 8 << 20, 0600);
	if (pop == NULL || OID_IS_NULL(pmemobj_root(pop, 64)))
		return 1;
	pmemobj_close(pop);
	/* A child says nothing that its parent has not said yet. */
	setvbuf(stdout, NULL, _IONBF, 0);
	all("outside a transaction", outside, CALLS);
	all("in ONABORT", in_onabort, CALLS);
	all("in FINALLY", in_finally, CALLS);
	all("beginning and ending", begins, 6);
	return 0;
}
