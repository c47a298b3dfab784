/* A red-black tree whose nodes hold the values. The way down is remembered, so nodes do not know their parents. */
#include "store.h"

TOID_DECLARE(struct node, STORE_TYPE(0));

/* What changes together. */
struct links {
	TOID(struct node) child[2];
	uint64_t is_red;
};

struct node {
	uint64_t key;
	struct links links;
	struct value value;
};

struct store {
	TOID(struct node) root;
};

enum { DEEPEST = 64 };

/* Nodes from the root on, and on which side of each it goes on. */
struct path {
	TOID(struct store) store;
	int length;
	TOID(struct node) nodes[DEEPEST];
	int sides[DEEPEST];
};

TOID(struct store) store_new(void)
{
	return TX_ZNEW(struct store);
}

static int is_red(TOID(struct node) node)
{
	return !TOID_IS_NULL(node) && D_RO(node)->links.is_red;
}

static TOID(struct node) child(TOID(struct node) node, int side)
{
	return D_RO(node)->links.child[side];
}

/* Links that the transaction restores if it is aborted. */
static struct links *links(TOID(struct node) node)
{
	TX_ADD_FIELD(node, links);
	return &D_RW(node)->links;
}

/* The node at a key, at the end of the path, or null behind it. */
static TOID(struct node) descend(TOID(struct store) store, uint64_t key, struct path *path)
{
	path->store = store;
	path->length = 0;
	TOID(struct node) node = D_RO(store)->root;
	while (!TOID_IS_NULL(node) && D_RO(node)->key != key) {
		int side = D_RO(node)->key < key;
		path->nodes[path->length] = node;
		path->sides[path->length++] = side;
		node = child(node, side);
	}
	return node;
}

/* Hangs a node where the path has its element `at`. */
static void hang(struct path *path, int at, TOID(struct node) node)
{
	if (at == 0)
		TX_SET(path->store, root, node);
	else
		links(path->nodes[at - 1])->child[path->sides[at - 1]] = node;
}

/* Turns the subtree at the path's element `at`: the child on the other side comes up, the node goes down to `side`.
 * Returns who came up, which is hung where the node was. */
static TOID(struct node) rotate(struct path *path, int at, TOID(struct node) node, int side)
{
	TOID(struct node) up = child(node, !side);
	links(node)->child[!side] = child(up, side);
	links(up)->child[side] = node;
	hang(path, at, up);
	return up;
}

/* The path's last node has a new child, which is red. */
static void mend_insertion(struct path *path)
{
	int at = path->length - 1;
	while (at > 0 && is_red(path->nodes[at])) {
		TOID(struct node) parent = path->nodes[at];
		TOID(struct node) above = path->nodes[at - 1];
		int side = path->sides[at - 1];
		TOID(struct node) uncle = child(above, !side);
		if (is_red(uncle)) {
			links(parent)->is_red = 0;
			links(uncle)->is_red = 0;
			links(above)->is_red = 1;
			at -= 2;
			continue;
		}
		if (path->sides[at] != side)
			rotate(path, at, parent, side);
		TOID(struct node) up = rotate(path, at - 1, above, !side);
		links(up)->is_red = 0;
		links(above)->is_red = 1;
		return;
	}
	if (path->length > 0 && is_red(path->nodes[0]))
		links(path->nodes[0])->is_red = 0;
}

int store_put(PMEMobjpool *pop, TOID(struct store) store, uint64_t key, const struct value *value)
{
	struct path path;
	TOID(struct node) there = descend(store, key, &path);
	TX_BEGIN(pop)
	{
		if (!TOID_IS_NULL(there)) {
			TX_SET(there, value, *value);
		} else {
			TOID(struct node) node = TX_NEW(struct node);
			D_RW(node)->key = key;
			D_RW(node)->links.child[0] = TOID_NULL(struct node);
			D_RW(node)->links.child[1] = TOID_NULL(struct node);
			D_RW(node)->links.is_red = path.length > 0;
			D_RW(node)->value = *value;
			hang(&path, path.length, node);
			mend_insertion(&path);
		}
	}
	TX_END
	return TOID_IS_NULL(there);
}

/* What hangs behind the path lacks one black node. */
static void mend_removal(struct path *path)
{
	int at = path->length - 1;
	while (at >= 0) {
		TOID(struct node) parent = path->nodes[at];
		int side = path->sides[at];
		TOID(struct node) other = child(parent, !side);
		if (is_red(other)) {
			links(other)->is_red = 0;
			links(parent)->is_red = 1;
			rotate(path, at, parent, side);
			path->nodes[at] = other;
			path->nodes[++at] = parent;
			path->sides[at] = side;
			other = child(parent, !side);
		}
		if (!is_red(child(other, 0)) && !is_red(child(other, 1))) {
			links(other)->is_red = 1;
			if (is_red(parent)) {
				links(parent)->is_red = 0;
				return;
			}
			at--;
			continue;
		}
		if (!is_red(child(other, !side))) {
			TOID(struct node) inner = child(other, side);
			links(inner)->is_red = 0;
			links(other)->is_red = 1;
			links(other)->child[side] = child(inner, !side);
			links(inner)->child[!side] = other;
			links(parent)->child[!side] = inner;
			other = inner;
		}
		links(other)->is_red = D_RO(parent)->links.is_red;
		links(parent)->is_red = 0;
		links(child(other, !side))->is_red = 0;
		rotate(path, at, parent, side);
		return;
	}
}

/* Takes a node out that hangs behind the path. The next one in order takes the place of a node with two children. */
static void unhang(struct path *path, TOID(struct node) node)
{
	int at = path->length;
	TOID(struct node) rest = child(node, TOID_IS_NULL(child(node, 0)));
	int was_red = is_red(node);
	if (TOID_IS_NULL(child(node, 0)) || TOID_IS_NULL(child(node, 1))) {
		hang(path, at, rest);
	} else {
		path->nodes[path->length] = node;
		path->sides[path->length++] = 1;
		TOID(struct node) next = child(node, 1);
		while (!TOID_IS_NULL(child(next, 0))) {
			path->nodes[path->length] = next;
			path->sides[path->length++] = 0;
			next = child(next, 0);
		}
		rest = child(next, 1);
		was_red = is_red(next);
		hang(path, path->length, rest);
		*links(next) = D_RO(node)->links;
		hang(path, at, next);
		path->nodes[at] = next;
	}
	if (is_red(rest))
		links(rest)->is_red = 0;
	else if (!was_red)
		mend_removal(path);
}

int store_remove(PMEMobjpool *pop, TOID(struct store) store, uint64_t key)
{
	struct path path;
	TOID(struct node) node = descend(store, key, &path);
	if (TOID_IS_NULL(node))
		return 0;
	TX_BEGIN(pop)
	{
		unhang(&path, node);
		TX_FREE(node);
	}
	TX_END
	return 1;
}

int store_get(TOID(struct store) store, uint64_t key, struct value *value)
{
	TOID(struct node) node = D_RO(store)->root;
	while (!TOID_IS_NULL(node) && D_RO(node)->key != key)
		node = child(node, D_RO(node)->key < key);
	if (TOID_IS_NULL(node))
		return 0;
	*value = D_RO(node)->value;
	return 1;
}

static void each_below(TOID(struct node) node, store_visit *visit, void *argument)
{
	if (TOID_IS_NULL(node))
		return;
	each_below(child(node, 0), visit, argument);
	visit(argument, D_RO(node)->key, &D_RO(node)->value);
	each_below(child(node, 1), visit, argument);
}

void store_each(TOID(struct store) store, store_visit *visit, void *argument)
{
	each_below(D_RO(store)->root, visit, argument);
}

static void each_oid_below(TOID(struct node) node, oid_visit *visit, void *argument)
{
	for (int side = 0; side < 2 && !TOID_IS_NULL(node); side++) {
		visit(argument, &D_RW(node)->links.child[side].oid);
		each_oid_below(child(node, side), visit, argument);
	}
}

void store_each_oid(TOID(struct store) store, oid_visit *visit, void *argument)
{
	visit(argument, &D_RW(store)->root.oid);
	each_oid_below(D_RO(store)->root, visit, argument);
}

/* Black nodes on each way down, or minus one if a rule is broken. */
static int blacks(TOID(struct node) node, uint64_t least, uint64_t end)
{
	if (TOID_IS_NULL(node))
		return 0;
	uint64_t key = D_RO(node)->key;
	if (key < least || key >= end)
		return -1;
	if (is_red(node) && (is_red(child(node, 0)) || is_red(child(node, 1))))
		return -1;
	int left = blacks(child(node, 0), least, key);
	int right = blacks(child(node, 1), key + 1, end);
	return left < 0 || left != right ? -1 : left + !is_red(node);
}

int store_is_sound(TOID(struct store) store)
{
	return !is_red(D_RO(store)->root) && blacks(D_RO(store)->root, 0, STORE_KEYS) >= 0;
}
