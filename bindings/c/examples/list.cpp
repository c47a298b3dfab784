// A list of numbers in C++: as list.c does it.
//
//   list POOL VALUE...     puts the values in front, and prints the list
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <span>

#include <firn.hpp>

struct node {
	static constexpr auto firn_name = "node";
	firn::ptr<node> next;
	std::int64_t data = 0;
};

struct list {
	static constexpr auto firn_name = "list";
	firn::ptr<node> first;
	std::uint64_t length = 0;
};

int main(int count, char **arguments)
try {
	std::span<char *> values(arguments, static_cast<std::size_t>(count));
	if (count < 2) {
		std::fprintf(stderr, "usage: %s POOL VALUE...\n", values[0]);
		return 2;
	}
	firn_options options{};
	options.layout = "list";
	firn::pool pool = firn::pool::open_or_create(values[1], options);
	pool.start_collecting();
	{
		firn::session session(pool);
		session.transaction([](firn::transaction &tx) {
			if (!tx.root<list>("list"))
				tx.set_root("list", tx.make<list>());
		});
		for (char *value : values.subspan(2))
			session.transaction([&](firn::transaction &tx) {
				auto all = tx.root<list>("list");
				auto first = tx.get(all, &list::first);
				auto made = tx.make(node{tx.reference(first), std::strtoll(value, nullptr, 10)});
				tx.set(all, &list::first, made);
				tx.set(all, &list::length, tx.get(all, &list::length) + 1);
			});
		firn::reading reading(session);
		auto all = reading.root<list>("list");
		std::printf("%" PRIu64 ":", all->length);
		for (auto node = reading.follow(all->first); node; node = reading.follow(node->next))
			std::printf(" %" PRId64, node->data);
		std::printf("\n");
	}
	pool.stop_collecting();
	pool.close();
	return 0;
} catch (const firn::error &error) {
	std::fprintf(stderr, "list: %s\n", error.what());
	return 1;
}
