/* A B-tree of up to seven keys in a node; values are objects of their own. Full nodes are split on the way down of an
 * insertion, poor ones filled up on the way down of a removal, so no change goes back up. */
#include "store.h"

#include <string.h>

TOID_DECLARE(struct node, STORE_TYPE(0));
TOID_DECLARE(struct value, STORE_TYPE(1));

enum { DEGREE = 4, MOST = 2 * DEGREE - 1, LEAST = DEGREE - 1 };

struct item {
	uint64_t key;
	TOID(struct value) value;
};

struct node {
	uint64_t count;
	struct item items[MOST];
	TOID(struct node) children[MOST + 1];
};

struct store {
	TOID(struct node) root;
};

static int is_leaf(const struct node *node)
{
	return TOID_IS_NULL(node->children[0]);
}

/* The node, to be changed: the transaction restores it if it is aborted. */
static struct node *changed(TOID(struct node) node)
{
	TX_ADD(node);
	return D_RW(node);
}

TOID(struct store) store_new(void)
{
	TOID(struct store) store = TX_ZNEW(struct store);
	TOID(struct node) root = TX_ZNEW(struct node);
	D_RW(store)->root = root;
	return store;
}

/* Where a key is in a node, or belongs. */
static uint64_t place_of(const struct node *node, uint64_t key)
{
	uint64_t i = 0;
	while (i < node->count && node->items[i].key < key)
		i++;
	return i;
}

/* The item at a key, or null. */
static const struct item *found(TOID(struct store) store, uint64_t key)
{
	const struct node *node = D_RO(D_RO(store)->root);
	for (;;) {
		uint64_t i = place_of(node, key);
		if (i < node->count && node->items[i].key == key)
			return &node->items[i];
		if (is_leaf(node))
			return NULL;
		node = D_RO(node->children[i]);
	}
}

static void open_gap(struct node *node, uint64_t at)
{
	uint64_t behind = node->count - at;
	memmove(&node->items[at + 1], &node->items[at], behind * sizeof node->items[0]);
	memmove(&node->children[at + 2], &node->children[at + 1], behind * sizeof node->children[0]);
	node->count += 1;
}

static void close_gap(struct node *node, uint64_t at)
{
	uint64_t behind = node->count - at - 1;
	memmove(&node->items[at], &node->items[at + 1], behind * sizeof node->items[0]);
	memmove(&node->children[at + 1], &node->children[at + 2], behind * sizeof node->children[0]);
	node->count -= 1;
}

/* Splits a node's full child in two, with the middle item between them. */
static void split(TOID(struct node) parent, uint64_t at)
{
	TOID(struct node) left = D_RO(parent)->children[at];
	TOID(struct node) right = TX_ZNEW(struct node);
	struct node *from = changed(left);
	struct node *to = D_RW(right);
	to->count = LEAST;
	memcpy(to->items, &from->items[DEGREE], LEAST * sizeof to->items[0]);
	memcpy(to->children, &from->children[DEGREE], DEGREE * sizeof to->children[0]);
	from->count = LEAST;
	struct node *above = changed(parent);
	open_gap(above, at);
	above->items[at] = from->items[LEAST];
	above->children[at + 1] = right;
}

static void insert(TOID(struct store) store, uint64_t key, TOID(struct value) value)
{
	TOID(struct node) node = D_RO(store)->root;
	if (D_RO(node)->count == MOST) {
		TOID(struct node) root = TX_ZNEW(struct node);
		D_RW(root)->children[0] = node;
		split(root, 0);
		TX_SET(store, root, root);
		node = root;
	}
	for (;;) {
		uint64_t at = place_of(D_RO(node), key);
		if (is_leaf(D_RO(node))) {
			struct node *leaf = changed(node);
			uint64_t behind = leaf->count - at;
			memmove(&leaf->items[at + 1], &leaf->items[at], behind * sizeof leaf->items[0]);
			leaf->items[at].key = key;
			leaf->items[at].value = value;
			leaf->count += 1;
			return;
		}
		if (D_RO(D_RO(node)->children[at])->count == MOST) {
			split(node, at);
			at += D_RO(node)->items[at].key < key;
		}
		node = D_RO(node)->children[at];
	}
}

int store_put(PMEMobjpool *pop, TOID(struct store) store, uint64_t key, const struct value *value)
{
	const struct item *there = found(store, key);
	TX_BEGIN(pop)
	{
		if (there != NULL) {
			TOID(struct value) old = there->value;
			TX_ADD(old);
			*D_RW(old) = *value;
		} else {
			TOID(struct value) new = TX_NEW(struct value);
			*D_RW(new) = *value;
			insert(store, key, new);
		}
	}
	TX_END
	return there == NULL;
}

/* Joins two children and the item between them. */
static void merge(TOID(struct node) parent, uint64_t at)
{
	TOID(struct node) right = D_RO(parent)->children[at + 1];
	struct node *into = changed(D_RO(parent)->children[at]);
	const struct node *from = D_RO(right);
	into->items[into->count] = D_RO(parent)->items[at];
	memcpy(&into->items[into->count + 1], from->items, from->count * sizeof from->items[0]);
	memcpy(&into->children[into->count + 1], from->children, (from->count + 1) * sizeof from->children[0]);
	into->count += from->count + 1;
	close_gap(changed(parent), at);
	TX_FREE(right);
}

/* One item goes from the left child over the parent to the right one. */
static void shift_right(TOID(struct node) parent, uint64_t at)
{
	struct node *above = changed(parent);
	struct node *from = changed(above->children[at]);
	struct node *to = changed(above->children[at + 1]);
	memmove(&to->items[1], &to->items[0], to->count * sizeof to->items[0]);
	memmove(&to->children[1], &to->children[0], (to->count + 1) * sizeof to->children[0]);
	to->items[0] = above->items[at];
	to->children[0] = from->children[from->count];
	to->count += 1;
	from->count -= 1;
	above->items[at] = from->items[from->count];
}

static void shift_left(TOID(struct node) parent, uint64_t at)
{
	struct node *above = changed(parent);
	struct node *to = changed(above->children[at]);
	struct node *from = changed(above->children[at + 1]);
	to->items[to->count] = above->items[at];
	to->children[to->count + 1] = from->children[0];
	to->count += 1;
	above->items[at] = from->items[0];
	memmove(&from->items[0], &from->items[1], (from->count - 1) * sizeof from->items[0]);
	memmove(&from->children[0], &from->children[1], from->count * sizeof from->children[0]);
	from->count -= 1;
}

/* A child that has items to spare afterwards, and holds what the child at `at` held. */
static TOID(struct node) enriched(TOID(struct node) parent, uint64_t at)
{
	const struct node *above = D_RO(parent);
	if (D_RO(above->children[at])->count > LEAST)
		return above->children[at];
	if (at > 0 && D_RO(above->children[at - 1])->count > LEAST) {
		shift_right(parent, at - 1);
	} else if (at < above->count && D_RO(above->children[at + 1])->count > LEAST) {
		shift_left(parent, at);
	} else {
		at -= at == above->count;
		merge(parent, at);
	}
	return D_RO(parent)->children[at];
}

/* Takes the first or the last item below a node that has items to spare. */
static struct item take_outermost(TOID(struct node) node, int takes_last)
{
	while (!is_leaf(D_RO(node)))
		node = enriched(node, takes_last ? D_RO(node)->count : 0);
	struct node *leaf = changed(node);
	uint64_t at = takes_last ? leaf->count - 1 : 0;
	struct item taken = leaf->items[at];
	memmove(&leaf->items[at], &leaf->items[at + 1], (leaf->count - at - 1) * sizeof leaf->items[0]);
	leaf->count -= 1;
	return taken;
}

/* Takes out an item that is there. */
static void take_out(TOID(struct node) node, uint64_t key)
{
	for (;;) {
		const struct node *it = D_RO(node);
		uint64_t at = place_of(it, key);
		int is_here = at < it->count && it->items[at].key == key;
		if (is_here && is_leaf(it)) {
			struct node *leaf = changed(node);
			memmove(&leaf->items[at], &leaf->items[at + 1], (leaf->count - at - 1) * sizeof leaf->items[0]);
			leaf->count -= 1;
			return;
		}
		if (is_here && D_RO(it->children[at])->count > LEAST) {
			struct item before = take_outermost(it->children[at], 1);
			changed(node)->items[at] = before;
			return;
		}
		if (is_here && D_RO(it->children[at + 1])->count > LEAST) {
			struct item behind = take_outermost(it->children[at + 1], 0);
			changed(node)->items[at] = behind;
			return;
		}
		if (is_here) {
			merge(node, at);
			node = D_RO(node)->children[at];
		} else {
			node = enriched(node, at);
		}
	}
}

int store_remove(PMEMobjpool *pop, TOID(struct store) store, uint64_t key)
{
	const struct item *there = found(store, key);
	if (there == NULL)
		return 0;
	TX_BEGIN(pop)
	{
		TX_FREE(there->value);
		TOID(struct node) root = D_RO(store)->root;
		take_out(root, key);
		if (D_RO(root)->count == 0 && !is_leaf(D_RO(root))) {
			TX_SET(store, root, D_RO(root)->children[0]);
			TX_FREE(root);
		}
	}
	TX_END
	return 1;
}

int store_get(TOID(struct store) store, uint64_t key, struct value *value)
{
	const struct item *there = found(store, key);
	if (there == NULL)
		return 0;
	*value = *D_RO(there->value);
	return 1;
}

static void each_below(TOID(struct node) at, store_visit *visit, void *argument)
{
	const struct node *node = D_RO(at);
	for (uint64_t i = 0; i < node->count; i++) {
		if (!is_leaf(node))
			each_below(node->children[i], visit, argument);
		visit(argument, node->items[i].key, D_RO(node->items[i].value));
	}
	if (!is_leaf(node))
		each_below(node->children[node->count], visit, argument);
}

void store_each(TOID(struct store) store, store_visit *visit, void *argument)
{
	each_below(D_RO(store)->root, visit, argument);
}

static void each_oid_below(TOID(struct node) at, oid_visit *visit, void *argument)
{
	struct node *node = D_RW(at);
	for (uint64_t i = 0; i < node->count; i++)
		visit(argument, &node->items[i].value.oid);
	for (uint64_t i = 0; i <= node->count && !is_leaf(node); i++) {
		visit(argument, &node->children[i].oid);
		each_oid_below(node->children[i], visit, argument);
	}
}

void store_each_oid(TOID(struct store) store, oid_visit *visit, void *argument)
{
	visit(argument, &D_RW(store)->root.oid);
	each_oid_below(D_RO(store)->root, visit, argument);
}

/* How deep the leaves lie, or minus one if a rule is broken. */
static int depth(TOID(struct node) at, uint64_t fewest, uint64_t least, uint64_t end)
{
	const struct node *node = D_RO(at);
	if (node->count < fewest || node->count > MOST)
		return -1;
	int all = -2;
	for (uint64_t i = 0; i <= node->count; i++) {
		uint64_t key = i < node->count ? node->items[i].key : end;
		if (key < least || key > end || (i < node->count && key == end))
			return -1;
		int here = is_leaf(node) ? 0 : depth(node->children[i], LEAST, least, key);
		if (here < 0 || (all != -2 && here != all))
			return -1;
		all = here;
		least = key + 1;
	}
	return all + 1;
}

int store_is_sound(TOID(struct store) store)
{
	return depth(D_RO(store)->root, 0, 0, STORE_KEYS) >= 0;
}
