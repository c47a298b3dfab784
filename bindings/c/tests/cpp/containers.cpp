// Collections beside the standard library's, in random transactions of which some are rolled back, while the pool is
// collected. Ends with 0 if both hold the same all the time.
//
//   containers POOL SEED STEPS    one thread, everything
//   containers POOL threads       four threads that share a map, a hash map and a vector
#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <unordered_map>

#include <firn.hpp>

#include "check.hpp"
#include "often.hpp"

static_assert(std::bidirectional_iterator<firn::map_view<int, int>::iterator>);
static_assert(std::forward_iterator<firn::unordered_map_view<int, int>::iterator>);
static_assert(std::random_access_iterator<firn::vector_view<int>::iterator>);

namespace
{

enum class place : std::int16_t { cellar = -1, ground, roof };

struct size {
	float width = 0;
	std::uint32_t height = 0;
	bool operator==(const size &) const = default;
};

using names = std::map<std::string, std::string>;
using sizes = std::map<std::int32_t, size>;
using places = std::unordered_map<std::string, place>;
using digests = std::map<std::array<unsigned char, 3>, std::uint64_t>;
using lines = std::vector<std::string>;
using numbers = std::vector<double>;

using firn_names = firn::map<std::string, std::string>;
using firn_sizes = firn::map<std::int32_t, size>;
using firn_places = firn::unordered_map<std::string, place>;
using firn_digests = firn::unordered_map<std::array<unsigned char, 3>, std::uint64_t>;
using firn_lines = firn::vector<std::string>;
using firn_numbers = firn::vector<double>;

/* What keeps some of them by references. */
struct shelf {
	static constexpr auto firn_name = "shelf";
	firn::ptr<firn_names> by_name;
	firn::string label;
	firn::ptr<firn_lines> written;
};

/* The same of the standard's. */
struct model {
	names by_name;
	sizes by_number;
	places by_place;
	digests by_digest;
	lines written;
	numbers measured;
	std::string label;
};

class program
{
public:
	explicit program(std::uint64_t seed) : random_(seed)
	{
	}

	/* One change of one collection, done to both. */
	void step(firn::transaction &tx, model &to)
	{
		auto on = tx.root<shelf>("shelf");
		switch (below(7)) {
		case 0: {
			firn_names map(tx, tx.get(on, &shelf::by_name));
			change(map, to.by_name, text(), text());
			break;
		}
		case 1: {
			firn_sizes map(tx, "sizes");
			auto key = static_cast<std::int32_t>(below(60)) - 30;
			change(map, to.by_number, key, size{static_cast<float>(below(9)), static_cast<std::uint32_t>(below(9))});
			break;
		}
		case 2: {
			firn_places map(tx, "places");
			change(map, to.by_place, text(), static_cast<place>(static_cast<int>(below(3)) - 1));
			break;
		}
		case 3: {
			firn_digests map(tx, "digests");
			std::array<unsigned char, 3> key{static_cast<unsigned char>(below(3)), static_cast<unsigned char>(below(256)), 7};
			change(map, to.by_digest, key, below(1000));
			break;
		}
		case 4: {
			firn_lines vector(tx, tx.get(on, &shelf::written));
			change(vector, to.written, text());
			break;
		}
		case 5: {
			firn_numbers vector(tx, "numbers");
			change(vector, to.measured, static_cast<double>(below(100)) / 4);
			break;
		}
		default:
			to.label = text();
			tx.set(on, &shelf::label, to.label);
			CHECK(tx.get(on, &shelf::label) == to.label);
		}
	}

	std::uint64_t below(std::uint64_t bound)
	{
		return random_() % bound;
	}

private:
	std::string text()
	{
		std::string made(below(8) == 0 ? below(3000) : below(3), 'x');
		return made + std::to_string(below(40));
	}

	template <class Map, class Model, class K, class V> void change(Map &map, Model &model, const K &key, const V &value)
	{
		auto known = model.find(key);
		CHECK(map.contains(key) == (known != model.end()));
		CHECK(map.count(key) == model.count(key));
		switch (below(9)) {
		case 0:
		case 1:
			CHECK(map.insert_or_assign(key, value) == model.insert_or_assign(key, value).second);
			break;
		case 2:
			map[key] = value;
			model[key] = value;
			break;
		case 3:
			{
				auto [at, is_new] = map.insert({key, value});
				auto [model_at, model_is_new] = model.insert({key, value});
				CHECK(is_new == model_is_new && at->second == model_at->second && (*at).first == key);
			}
			break;
		case 4:
		case 5:
			CHECK(map.erase(key) == model.erase(key));
			break;
		case 6:
			CHECK(map.get(key).has_value() == (known != model.end()));
			if (known != model.end())
				CHECK(map.at(key) == known->second && static_cast<V>(map[key]) == known->second);
			else
				try {
					map.at(key);
					CHECK(false);
				} catch (const std::out_of_range &) {
				}
			break;
		case 7:
			if constexpr (requires { map.lower_bound(key); }) {
				// Some of a range go.
				auto at = map.lower_bound(key);
				auto model_at = model.lower_bound(key);
				for (int i = 0; i < 3 && model_at != model.end(); i++) {
					CHECK(at != map.end() && at->first == model_at->first);
					at = map.erase(at);
					model_at = model.erase(model_at);
				}
				CHECK((at == map.end()) == (model_at == model.end()));
			}
			break;
		default:
			if (below(20) == 0) {
				map.clear();
				model.clear();
			}
		}
		CHECK(map.size() == model.size() && map.empty() == model.empty());
	}

	template <class Vector, class T> void change(Vector &vector, std::vector<T> &model, const T &value)
	{
		std::uint64_t index = below(model.size() + 1);
		auto at = static_cast<std::ptrdiff_t>(index);
		switch (below(9)) {
		case 0:
		case 1:
		case 2:
			vector.push_back(value);
			model.push_back(value);
			break;
		case 3:
			CHECK(*vector.insert(vector.begin() + at, value) == value);
			model.insert(model.begin() + at, value);
			break;
		case 4:
			if (index < model.size()) {
				vector.erase(vector.begin() + at);
				model.erase(model.begin() + at);
			}
			break;
		case 5:
			if (index < model.size()) {
				vector[index] = value;
				model[index] = value;
				vector[index] += value;
				model[index] += value;
			}
			break;
		case 6:
			vector.pop_back();
			if (!model.empty())
				model.pop_back();
			break;
		case 7:
			vector.resize(index + 2, value);
			model.resize(index + 2, value);
			break;
		default:
			CHECK(vector.get(index).has_value() == (index < model.size()));
			if (below(20) == 0) {
				vector.clear();
				model.clear();
			}
		}
		CHECK(vector.size() == model.size());
		if (!model.empty())
			CHECK(vector.front() == model.front() && vector.back() == model.back());
	}

	std::mt19937_64 random_;
};

/* Whether an ordered map and its model are the same, from both ends and from the middle. */
template <class View, class Model> void compare_ordered(const View &view, const Model &model)
{
	CHECK(view.check().empty());
	CHECK(std::equal(view.begin(), view.end(), model.begin(), model.end()));
	auto at = view.end();
	for (auto model_at = model.rbegin(); model_at != model.rend(); ++model_at)
		CHECK((*--at).first == model_at->first && at->second == model_at->second);
	CHECK(at == view.begin());
	for (const auto &[key, value] : model) {
		CHECK(view.find(key)->second == value);
		auto above = view.upper_bound(key);
		auto model_above = model.upper_bound(key);
		CHECK((above == view.end()) == (model_above == model.end()));
		CHECK(model_above == model.end() || above->first == model_above->first);
	}
}

template <class View, class Model> void compare_unordered(const View &view, const Model &model)
{
	CHECK(view.check().empty());
	std::uint64_t entries = 0;
	for (auto at = view.begin(); at != view.end(); ++at, ++entries)
		CHECK(model.at((*at).first) == at->second);
	CHECK(entries == model.size() && view.size() == entries);
	// From one that was searched for on there are as many as from where it comes by itself.
	entries = 0;
	for (auto at = view.begin(); at != view.end(); ++at) {
		CHECK(view.find(at->first) == at);
		if (++entries % 16 == 0)
			CHECK(std::distance(view.find(at->first), view.end()) == std::distance(at, view.end()));
	}
	for (const auto &[key, value] : model)
		CHECK(view.find(key)->second == value);
}

template <class View, class T> void compare_vector(const View &view, const std::vector<T> &model)
{
	CHECK(view.check().empty());
	CHECK(std::equal(view.begin(), view.end(), model.begin(), model.end()));
}

void compare(firn::session &session, const model &with)
{
	firn::reading reading(session);
	auto on = reading.root<shelf>("shelf");
	CHECK(reading.view(on, &shelf::label) == with.label && reading.get(on, &shelf::label) == with.label);
	compare_ordered(firn::map_view<std::string, std::string>(reading, reading.follow(on->by_name)), with.by_name);
	compare_ordered(firn::map_view<std::int32_t, size>(reading, "sizes"), with.by_number);
	compare_unordered(firn::unordered_map_view<std::string, place>(reading, "places"), with.by_place);
	compare_unordered(firn::unordered_map_view<std::array<unsigned char, 3>, std::uint64_t>(reading, "digests"),
			  with.by_digest);
	compare_vector(firn::vector_view<std::string>(reading, reading.follow(on->written)), with.written);
	compare_vector(firn::vector_view<double>(reading, "numbers"), with.measured);
}

void create(firn::session &session)
{
	session.transaction([](firn::transaction &tx) {
		auto made = tx.make(shelf{});
		tx.set(made, &shelf::by_name, firn_names(tx).object());
		tx.set(made, &shelf::written, firn_lines(tx).object());
		tx.set_root("shelf", made);
		firn_sizes(tx, "sizes");
		firn_places(tx, "places");
		firn_digests(tx, "digests");
		firn_numbers(tx, "numbers");
	});
}

/* Makes objects in a row and frees most, so that there is something to move. */
void leave_holes(firn::session &session)
{
	constexpr std::uint64_t many = 400;
	session.transaction([](firn::transaction &tx) { firn_lines(tx, "holes").resize(many, std::string(100, 'z')); });
	session.transaction([](firn::transaction &tx) {
		firn_lines holes(tx, "holes");
		for (std::uint64_t i = 0; i < many; i++)
			if (i % 8 != 0)
				holes[i] = "";
	});
}

void alone(const char *path, std::uint64_t seed, std::uint64_t steps)
{
	program with(seed);
	model now;
	firn_options options{};
	options.kind = seed % 2 == 0 ? FIRN_TRACED : FIRN_EXPLICIT;
	std::uint64_t moved = 0;
	for (int round = 0; round < 4; round++) {
		auto pool = firn::pool::open_or_create(path, options);
		// Beside the program, or between its transactions.
		bool beside = round % 2 == 0;
		if (beside)
			pool.start_collecting(often());
		{
			firn::session session(pool);
			if (round == 0)
				create(session);
			for (std::uint64_t i = 0; i < steps; i++) {
				model then = now;
				bool is_kept = with.below(4) != 0;
				try {
					session.transaction([&](firn::transaction &tx) {
						then = now;
						for (std::uint64_t left = 1 + with.below(6); left > 0; left--)
							with.step(tx, then);
						try {
							tx.nested([&](firn::transaction &in) {
								model lost = then;
								with.step(in, lost);
								throw 1;
							});
						} catch (int) {
						}
						if (!is_kept)
							throw 2;
					});
					now = then;
				} catch (int) {
					CHECK(!is_kept);
				}
				if (i % 64 != 0)
					continue;
				if (!beside) {
					leave_holes(session);
					moved += pool.collect(often()).moved_objects;
				}
				compare(session, now);
			}
			compare(session, now);
		}
		if (beside)
			pool.stop_collecting();
		CHECK(pool.check().empty());
		pool.close();
	}
	// Where everything moves at the end of each operation, as the environment may ask, a collection finds no work.
	const char *collects = std::getenv("FIRN_COLLECT");
	CHECK(moved > 0 || (collects != nullptr && std::string(collects) == "safepoints"));
	std::printf("done\n");
}

constexpr int writers = 2;
constexpr int entries = 400;

/* Each writer counts up entries of its own; readers see no entry that goes back. */
void together(const char *path)
{
	auto pool = firn::pool::open_or_create(path);
	pool.start_collecting(often());
	{
		firn::session session(pool);
		session.transaction([](firn::transaction &tx) {
			firn_names(tx, "names");
			firn_places(tx, "places");
			firn_numbers(tx, "numbers").resize(writers);
		});
	}
	// Names that all threads share; the strings say the same.
	const firn::root_name kept_names("names"), kept_places("places"), kept_numbers("numbers");
	auto write = [&](int writer) {
		firn::session session(pool);
		for (int i = 0; i < entries; i++)
			session.transaction([&](firn::transaction &tx) {
				std::string key = std::to_string(writer) + "/" + std::to_string(i);
				firn_names(tx, kept_names)[key] = std::string(static_cast<std::size_t>(i % 50), 'y');
				firn_places(tx, kept_places)[key] = place::roof;
				firn_numbers(tx, "numbers")[static_cast<std::uint64_t>(writer)] += 1;
			});
	};
	auto read = [&] {
		firn::session session(pool);
		double last = 0;
		while (last < writers * entries) {
			firn::reading reading(session);
			double all = 0;
			for (double number : firn::vector_view<double>(reading, kept_numbers))
				all += number;
			CHECK(all >= last);
			last = all;
			// What was counted when that was read is there, and more may be.
			firn::map_view<std::string, std::string> walked_names(reading, kept_names);
			double walked = 0;
			std::string before;
			for (const auto &[key, value] : walked_names) {
				CHECK(before < key && value.size() < 50);
				before = key;
				walked++;
			}
			CHECK(walked >= all);
			CHECK(static_cast<double>(firn::unordered_map_view<std::string, place>(reading, "places").size()) >= all);
		}
	};
	std::vector<std::thread> threads;
	for (int i = 0; i < writers; i++)
		threads.emplace_back(write, i);
	threads.emplace_back(read);
	threads.emplace_back(read);
	for (auto &thread : threads)
		thread.join();
	pool.stop_collecting();
	CHECK(pool.check().empty());
	std::printf("done\n");
}

} // namespace

int main(int count, char **arguments)
try {
	if (count == 4)
		alone(arguments[1], std::strtoull(arguments[2], nullptr, 10), std::strtoull(arguments[3], nullptr, 10));
	else if (count == 3)
		together(arguments[1]);
	else
		return 2;
	return 0;
} catch (const firn::error &error) {
	std::fprintf(stderr, "%s: %s\n", firn_status_name(error.status()), error.what());
	return 1;
}
