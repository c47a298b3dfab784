// Objects of 64 members, many of them arrays and structures, until the program is killed while they move.
//
//   wide POOL run         makes objects, and prints the number of each that is durable
//   wide POOL audit       compares all that there are with what so many changes make, and prints how many there were,
//                         and how many objects have been moved meanwhile
#include <firn.hpp>

#include <algorithm>
#include <iterator>

#include "check.hpp"
#include "often.hpp"

namespace
{

struct leaf {
	static constexpr auto firn_name = "leaf";
	std::uint64_t number = 0;
};

struct pair {
	std::int32_t grid[2][3]{};
	firn::ptr<leaf> both[2];
};

struct nothing {
};

#define EIGHT(name)                                                                                                    \
	std::uint64_t name##0 = 0, name##1 = 0, name##2 = 0, name##3 = 0, name##4 = 0, name##5 = 0, name##6 = 0,       \
		      name##7 = 0;

/* The references are where the members of the shorter types were never looked for. */
struct wide {
	static constexpr auto firn_name = "wide";
	EIGHT(a) EIGHT(b) EIGHT(c) EIGHT(d) EIGHT(e) EIGHT(f)
	std::uint16_t short_one = 0;
	bool is_even = false;
	char text[24]{};
	nothing none;
	std::array<double, 3> halves{};
	float quarters[4]{};
	firn::ptr<leaf> one;
	firn::ptr<leaf> rows[2][2];
	std::array<firn::ptr<leaf>, 3> column;
	pair pairs[2];
	std::array<pair, 1> last_pair;
	std::uint64_t numbers[5]{};
	firn::string name;
	std::uint8_t bytes[8]{};
	firn::ptr<wide> next;
	std::uint64_t number = 0;
};
static_assert(firn::detail::count_members<wide>() == 64);
static_assert(firn::detail::count_members<pair>() == 2);

/* What C arrays and those of the standard hold is described alike. */
struct c_arrays {
	static constexpr auto firn_name = "arrays";
	float numbers[3];
	firn::ptr<leaf> references[2];
	std::int16_t grid[2][4];
	pair pairs[2];
};
struct standard_arrays {
	static constexpr auto firn_name = "arrays";
	std::array<float, 3> numbers;
	std::array<firn::ptr<leaf>, 2> references;
	std::array<std::array<std::int16_t, 4>, 2> grid;
	std::array<pair, 2> pairs;
};

using members = std::vector<firn_member>;

members members_of(const firn_type *type)
{
	const void *first = type->fields;
	const auto *begin = static_cast<const firn_member *>(first);
	return {begin, begin + (type->field_count & ~FIRN_MEMBERS)};
}

void described()
{
	members all = members_of(firn::detail::type<wide>());
	std::vector<std::size_t> found, expected;
	for (const firn_member &member : all)
		for (std::size_t at = 0; member.kind == FIRN_REFERENCE && at < member.field.bytes; at += 8)
			found.push_back(member.field.offset + at);
	auto expect = [&](std::size_t offset, std::size_t references) {
		for (std::size_t i = 0; i < references; i++)
			expected.push_back(offset + 8 * i);
	};
	expect(offsetof(wide, one), 1 + 4 + 3);
	for (std::size_t i = 0; i < 2; i++)
		expect(offsetof(wide, pairs) + i * sizeof(pair) + offsetof(pair, both), 2);
	expect(offsetof(wide, last_pair) + offsetof(pair, both), 2);
	expect(offsetof(wide, name), 1);
	expect(offsetof(wide, next), 1);
	CHECK(found == expected);
	CHECK(all.size() == 48 + 2 + 3 + 8 + 5 + 3 + 1 + 1 + 1 + 1 + 1);
	auto equal = [](const firn_member &a, const firn_member &b) {
		return a.field.offset == b.field.offset && a.field.bytes == b.field.bytes && a.kind == b.kind &&
		       a.element == b.element && a.to == b.to;
	};
	members c = members_of(firn::detail::type<c_arrays>());
	members standard = members_of(firn::detail::type<standard_arrays>());
	CHECK(c.size() == 9 && std::equal(c.begin(), c.end(), standard.begin(), standard.end(), equal));
	CHECK(c[0].kind == FIRN_FLOAT && c[0].element == 4 && c[0].field.bytes == 12);
}

/* Calls with each of an object's references to leaves. */
template <class W, class F> void each_reference(W &of, F &&call)
{
	call(of.one);
	for (auto &row : of.rows)
		for (auto &reference : row)
			call(reference);
	for (auto &reference : of.column)
		call(reference);
	for (auto *pair : {&of.pairs[0], &of.pairs[1], &of.last_pair[0]})
		for (auto &reference : pair->both)
			call(reference);
}

/* Object `number` without its references. */
wide plain(std::uint64_t number)
{
	wide made;
	std::uint64_t *const words[] = {&made.a0, &made.b1, &made.c2, &made.d3, &made.e4, &made.f7};
	for (std::size_t i = 0; i < std::size(words); i++)
		*words[i] = number * 7 + i;
	made.short_one = static_cast<std::uint16_t>(number);
	made.is_even = number % 2 == 0;
	std::snprintf(made.text, sizeof made.text, "wide %llu", static_cast<unsigned long long>(number));
	made.halves = {static_cast<double>(number) / 2, 0.5, 1.5};
	made.quarters[3] = static_cast<float>(number % 1000) / 4;
	made.pairs[1].grid[1][2] = static_cast<std::int32_t>(number);
	made.last_pair[0].grid[0][1] = -made.pairs[1].grid[1][2];
	made.numbers[4] = ~number;
	std::fill(std::begin(made.bytes), std::end(made.bytes), static_cast<std::uint8_t>(number * 3));
	made.number = number;
	return made;
}

/* Every so many objects, the older ones are dropped. */
constexpr std::uint64_t chain = 40;

/* Makes an object; the first of its numbers counts what has been moved. */
std::uint64_t change(firn::session &session, std::uint64_t moved)
{
	return session.transaction([&](firn::transaction &tx) {
		auto newest = tx.root<wide>("newest");
		std::uint64_t number = newest ? newest->number + 1 : 1;
		wide front = plain(number);
		front.numbers[0] = (newest ? newest->numbers[0] : 0) + moved;
		std::uint64_t slot = 0;
		each_reference(front, [&](firn::ptr<leaf> &reference) {
			reference = tx.reference(tx.make(leaf{number * 100 + slot++}));
		});
		front.name = tx.text("name of " + std::to_string(number));
		if (number % chain != 0)
			front.next = tx.reference(newest);
		tx.set_root("newest", tx.make(front));
		return number;
	});
}

/* Whether an object is what its number makes of it. */
void compare(const firn::reading &reading, const firn::obj<wide> &at, std::uint64_t number)
{
	wide found = reading.get(at), made = plain(number);
	std::uint64_t slot = 0;
	each_reference(*at, [&](const firn::ptr<leaf> &reference) {
		CHECK(reading.follow(reference)->number == number * 100 + slot++);
	});
	CHECK(slot == 14 && reading.view(at, &wide::name) == "name of " + std::to_string(number));
	CHECK(std::memcmp(&found.a0, &made.a0, 48 * sizeof made.a0) == 0 && found.short_one == made.short_one);
	CHECK(found.is_even == made.is_even && std::string_view(found.text) == made.text);
	CHECK(found.halves == made.halves && std::ranges::equal(found.quarters, made.quarters));
	for (std::size_t i = 0; i < 2; i++)
		for (std::size_t row = 0; row < 2; row++)
			CHECK(std::ranges::equal(found.pairs[i].grid[row], made.pairs[i].grid[row]));
	CHECK(std::ranges::equal(found.last_pair[0].grid[0], made.last_pair[0].grid[0]));
	CHECK(found.numbers[4] == made.numbers[4] && std::ranges::equal(found.bytes, made.bytes));
	CHECK(found.number == number);
}

void run(firn::pool &pool, firn::session &session)
{
	std::uint64_t moved = 0;
	for (;;) {
		std::uint64_t made = change(session, std::exchange(moved, 0));
		std::printf("%llu\n", static_cast<unsigned long long>(made));
		std::fflush(stdout);
		if (made % 16 == 0)
			moved = pool.collect(often()).moved_objects;
	}
}

/* Compares all objects; prints how many were made, and how many were moved. */
void compare_all(firn::session &session)
{
	firn::reading reading(session);
	auto at = reading.root<wide>("newest");
	std::uint64_t newest = at ? at->number : 0, moved = at ? at->numbers[0] : 0, number = newest;
	for (; at; at = reading.follow(at->next), number--)
		compare(reading, at, number);
	CHECK(newest < chain ? number == 0 : number % chain == chain - 1);
	std::printf("%llu %llu\n", static_cast<unsigned long long>(newest), static_cast<unsigned long long>(moved));
}

} // namespace

int main(int count, char **arguments)
try {
	if (count != 3)
		return 2;
	described();
	// What is with the system survives a kill. To wait for the disk would leave few changes to be killed in.
	firn_options options = {};
	options.level = FIRN_WRITTEN;
	auto pool = firn::pool::open_or_create(arguments[1], options);
	firn::session session(pool);
	if (arguments[2] == std::string_view("run"))
		run(pool, session);
	CHECK(pool.check().empty());
	compare_all(session);
	return 0;
} catch (const firn::error &error) {
	std::fprintf(stderr, "%s: %s\n", firn_status_name(error.status()), error.what());
	return 1;
}
