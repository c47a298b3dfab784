// Collections that are changed until the program is killed, while they are collected.
//
//   killed POOL run       makes changes, and prints the number of each that is durable
//   killed POOL audit     compares everything with what so many changes make, and prints how many there were, and how
//                         many objects have been moved meanwhile
#include <algorithm>
#include <map>
#include <unordered_map>

#include <firn.hpp>

#include "check.hpp"
#include "often.hpp"

namespace
{

struct summary {
	static constexpr auto firn_name = "summary";
	firn::string newest;
	firn::ptr<firn::vector<std::string>> lines;
	std::uint64_t moved = 0;
};

std::string line_of(std::uint64_t change)
{
	return "line " + std::to_string(change) + std::string(change % 7 == 0 ? 500 : change % 40, '.');
}

std::string word_of(std::uint64_t change)
{
	return "word " + std::to_string(change % 97);
}

/* Change number `change` of collections, the standard's or these. */
template <class Lines, class Counts, class Places>
void change(std::uint64_t change, Lines &lines, Counts &counts, Places &places)
{
	lines.push_back(line_of(change));
	counts[word_of(change)] += change;
	places[change % 31] = static_cast<std::uint32_t>(change);
	if (change % 5 == 4) {
		counts.erase(word_of(change * 7));
		places.erase(change * 3 % 31);
	}
}

void run(firn::pool &pool, firn::session &session)
{
	for (;;) {
		std::uint64_t made = session.transaction([](firn::transaction &tx) {
			auto all = tx.root<summary>("summary");
			firn::vector lines(tx, tx.get(all, &summary::lines));
			firn::map<std::string, std::uint64_t> counts(tx, "counts");
			firn::unordered_map<std::uint64_t, std::uint32_t> places(tx, "places");
			std::uint64_t number = lines.size();
			change(number, lines, counts, places);
			tx.set(all, &summary::newest, line_of(number));
			return number + 1;
		});
		std::printf("%llu\n", static_cast<unsigned long long>(made));
		std::fflush(stdout);
		if (made % 16 != 0)
			continue;
		std::uint64_t moved = pool.collect(often()).moved_objects;
		session.transaction([&](firn::transaction &tx) {
			auto all = tx.root<summary>("summary");
			tx.set(all, &summary::moved, tx.get(all, &summary::moved) + moved);
		});
	}
}

void audit(firn::pool &pool, firn::session &session)
{
	CHECK(pool.check().empty());
	firn::reading reading(session);
	auto all = reading.root<summary>("summary");
	firn::vector_view lines(reading, reading.follow(all->lines));
	firn::map_view<std::string, std::uint64_t> counts(reading, "counts");
	firn::unordered_map_view<std::uint64_t, std::uint32_t> places(reading, "places");
	CHECK(lines.check().empty() && counts.check().empty() && places.check().empty());
	std::vector<std::string> model_lines;
	std::map<std::string, std::uint64_t> model_counts;
	std::unordered_map<std::uint64_t, std::uint32_t> model_places;
	for (std::uint64_t number = 0; number < lines.size(); number++)
		change(number, model_lines, model_counts, model_places);
	CHECK(std::equal(lines.begin(), lines.end(), model_lines.begin(), model_lines.end()));
	CHECK(std::equal(counts.begin(), counts.end(), model_counts.begin(), model_counts.end()));
	CHECK(places.size() == model_places.size());
	for (const auto &[place, number] : places)
		CHECK(model_places.at(place) == number);
	CHECK(reading.view(all, &summary::newest) == (model_lines.empty() ? "" : model_lines.back()));
	std::printf("%llu %llu\n", static_cast<unsigned long long>(lines.size()),
		    static_cast<unsigned long long>(all->moved));
}

} // namespace

int main(int count, char **arguments)
try {
	if (count != 3)
		return 2;
	// What is with the system survives a kill. To wait for the disk would leave few changes to be killed in.
	firn_options options = {};
	options.level = FIRN_WRITTEN;
	auto pool = firn::pool::open_or_create(arguments[1], options);
	firn::session session(pool);
	session.transaction([](firn::transaction &tx) {
		if (tx.root<summary>("summary"))
			return;
		auto all = tx.make<summary>();
		tx.set(all, &summary::lines, firn::vector<std::string>(tx).object());
		tx.set_root("summary", all);
		firn::map<std::string, std::uint64_t>(tx, "counts");
		firn::unordered_map<std::uint64_t, std::uint32_t>(tx, "places");
	});
	if (arguments[2] == std::string_view("run"))
		run(pool, session);
	audit(pool, session);
	return 0;
} catch (const firn::error &error) {
	std::fprintf(stderr, "%s: %s\n", firn_status_name(error.status()), error.what());
	return 1;
}
