// Versions of one program that have a pool in turns: layouts POOL write | read | migrate. Which one it is PROGRAM says.
// Prints what it read, or what was refused.
#include <firn.hpp>

#include <cstring>
#include <iostream>

/* One name for all, whatever T. */
template <class T> struct node {
	static constexpr auto firn_name = "node";
#if PROGRAM == 2
	static constexpr std::uint32_t firn_version = 2;
#endif
	T value{};
	firn::ptr<node> next;
#if PROGRAM == 2
	std::uint64_t more = 0;
#endif
};

#if PROGRAM == 3
using value = double;
#elif PROGRAM == 4
using value = std::array<std::uint32_t, 2>;
#else
using value = std::uint64_t;
#endif

/* Leads to nodes, and to what leads back. */
struct list;
struct holder {
	static constexpr auto firn_name = "holder";
	firn::ptr<list> held;
};
struct list {
	static constexpr auto firn_name = "list";
	firn::ptr<holder> by;
	std::array<firn::ptr<node<value>>, 2> ends;
};

static void write(firn::session &session)
{
	session.transaction([](firn::transaction &tx) {
		list front;
		front.ends[0] = tx.reference(tx.make(node<value>{}));
		auto made = tx.make(front);
		holder by;
		by.held = tx.reference(made);
		tx.set_root("holder", tx.make(by));
	});
}

static void read(firn::session &session)
{
	firn::reading reading(session);
	auto by = reading.root<holder>("holder");
	auto first = reading.follow(reading.follow(by->held)->ends[0]);
	std::cout << (first->next ? "more" : "one") << '\n';
}

#if PROGRAM == 2
struct old_node {
	static constexpr auto firn_name = "node";
	value number{};
	firn::ptr<old_node> next;
};

static std::uint64_t migrate(firn::pool &pool)
{
	return pool.migrate<old_node, node<value>>([](const old_node &old) {
		return node<value>{old.number, firn::ptr<node<value>>::of(old.next.ref()), 7};
	});
}
#else
static std::uint64_t migrate(firn::pool &)
{
	return 0;
}
#endif

int main(int argc, char **argv)
try {
	if (argc != 3)
		return 2;
	bool writes = std::strcmp(argv[2], "write") == 0;
	firn::pool pool = writes ? firn::pool::create(argv[1]) : firn::pool::open(argv[1]);
	if (std::strcmp(argv[2], "migrate") == 0) {
		std::cout << migrate(pool) << '\n';
	} else {
		firn::session session(pool);
		writes ? write(session) : read(session);
	}
	pool.close();
	return 0;
} catch (const firn::error &error) {
	std::cout << firn_status_name(error.status()) << ": " << error.what() << '\n';
	return 0;
}
