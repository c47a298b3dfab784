// Counts words, and remembers the lines that they stood in: collections in a pool.
//
//   words POOL [LINE...]     adds the lines, and prints what there is
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include <firn.hpp>

// The collections of the program: an object of the pool that names them.
struct book {
	static constexpr auto firn_name = "book";
	firn::ptr<firn::vector<std::string>> lines;
	firn::ptr<firn::map<std::string, std::uint64_t>> counts;
	firn::ptr<firn::unordered_map<std::string, std::uint64_t>> last_lines;
	firn::string longest;
};

static void add(firn::transaction &tx, std::string_view line)
{
	auto in = tx.root<book>("book");
	firn::vector lines(tx, tx.get(in, &book::lines));
	firn::map counts(tx, tx.get(in, &book::counts));
	firn::unordered_map last_lines(tx, tx.get(in, &book::last_lines));
	std::uint64_t number = lines.size();
	lines.push_back(line);
	while (!line.empty()) {
		std::string_view word = line.substr(0, line.find(' '));
		line.remove_prefix(std::min(word.size() + 1, line.size()));
		if (word.empty())
			continue;
		counts[word] += 1;
		last_lines.insert_or_assign(word, number);
		if (word.size() > tx.get(in, &book::longest).size())
			tx.set(in, &book::longest, word);
	}
}

int main(int count, char **arguments)
try {
	std::span<char *> given(arguments, static_cast<std::size_t>(count));
	if (count < 2) {
		std::fprintf(stderr, "usage: %s POOL [LINE...]\n", given[0]);
		return 2;
	}
	firn_options options{};
	options.layout = "words";
	firn::pool pool = firn::pool::open_or_create(given[1], options);
	pool.start_collecting();
	{
		firn::session session(pool);
		session.transaction([](firn::transaction &tx) {
			if (tx.root<book>("book"))
				return;
			auto made = tx.make<book>();
			tx.set(made, &book::lines, firn::vector<std::string>(tx).object());
			tx.set(made, &book::counts, firn::map<std::string, std::uint64_t>(tx).object());
			tx.set(made, &book::last_lines, firn::unordered_map<std::string, std::uint64_t>(tx).object());
			tx.set_root("book", made);
		});
		for (char *line : given.subspan(2))
			session.transaction([&](firn::transaction &tx) { add(tx, line); });

		firn::reading reading(session);
		auto in = reading.root<book>("book");
		firn::vector_view lines(reading, reading.follow(in->lines));
		firn::unordered_map_view last_lines(reading, reading.follow(in->last_lines));
		for (const auto &[word, times] : firn::map_view(reading, reading.follow(in->counts)))
			std::printf("%" PRIu64 " %s, last in: %s\n", times, word.c_str(), lines[last_lines.at(word)].c_str());
		std::string_view longest = reading.view(in, &book::longest);
		std::printf("longest: %.*s\n", static_cast<int>(longest.size()), longest.data());
	}
	pool.stop_collecting();
	pool.close();
	return 0;
} catch (const firn::error &error) {
	std::fprintf(stderr, "words: %s\n", error.what());
	return 1;
}
