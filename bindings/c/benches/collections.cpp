// What calls.rs does with collections, in C++: the nanoseconds of processor time that an operation takes, a line each.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <firn.hpp>

static double now()
{
	timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

int main(int count, char **arguments)
try {
	if (count != 3)
		return 2;
	const std::uint64_t entries = std::strtoull(arguments[1], nullptr, 10);
	const std::uint64_t gets = std::strtoull(arguments[2], nullptr, 10);
	auto key = [&](std::uint64_t index) { return index * 7919 % entries * 1000003; };
	firn_options options{};
	options.domain = FIRN_ASSUME_ADR;
	firn::pool pool = firn::pool::in_memory(options);
	firn::session session(pool);
	std::array<double, 5> spent{};
	double begin = now();
	for (std::uint64_t i = 0; i < entries; i++)
		session.transaction([&](firn::transaction &tx) {
			firn::map<std::uint64_t, std::uint64_t>(tx, "map").insert_or_assign(key(i), i);
		});
	double map_filled = now();
	for (std::uint64_t i = 0; i < entries; i++)
		session.transaction([&](firn::transaction &tx) {
			firn::unordered_map<std::uint64_t, std::uint64_t>(tx, "hash").insert_or_assign(key(i), i);
		});
	double hash_filled = now();
	session.transaction([&](firn::transaction &tx) {
		firn::vector<std::uint64_t> vector(tx, "vector");
		for (std::uint64_t i = 0; i < entries; i++)
			vector.push_back(i);
	});
	spent[1] = map_filled - begin;
	spent[3] = hash_filled - map_filled;
	firn::reading reading(session);
	firn::map_view<std::uint64_t, std::uint64_t> map(reading, "map");
	firn::unordered_map_view<std::uint64_t, std::uint64_t> hash(reading, "hash");
	firn::vector_view<std::uint64_t> vector(reading, "vector");
	std::uint64_t sum = 0;
	for (std::uint64_t round = 0; round < gets; round++) {
		begin = now();
		for (std::uint64_t i = 0; i < entries; i++)
			sum += map.get(key(i)).value();
		double map_read = now();
		for (std::uint64_t i = 0; i < entries; i++)
			sum += hash.get(key(i)).value();
		double hash_read = now();
		for (std::uint64_t i = 0; i < entries; i++)
			sum += vector.get(key(i) / 1000003).value();
		spent[0] += map_read - begin;
		spent[2] += hash_read - map_read;
		spent[4] += now() - hash_read;
	}
	if (sum != 3 * gets * (entries * (entries - 1) / 2))
		return 1;
	double each = static_cast<double>(entries);
	double all = each * static_cast<double>(gets);
	std::printf("%f\n%f\n%f\n%f\n%f\n", spent[0] / all, spent[1] / each, spent[2] / all, spent[3] / each,
		    spent[4] / all);
	return 0;
} catch (const firn::error &error) {
	std::fprintf(stderr, "%s\n", error.what());
	return 1;
}
