// What firn.hpp promises, each once. Ends with 0 if all of it holds.
#include <firn.hpp>

#include "check.hpp"

enum class color : std::uint8_t { red, green };

struct edge {
	std::uint64_t weight = 0;
	firn::ptr<struct vertex> to;
};

struct vertex {
	static constexpr auto firn_name = "vertex";
	std::uint64_t number = 0;
	std::array<edge, 3> edges;
	color paint = color::red;
	firn::ptr<vertex> twin;
	double weight = 0;
};

/* With what is not found by itself. */
struct plain {
	static constexpr auto firn_name = "plain";
	static constexpr std::uint32_t firn_version = 3;
	firn::ptr<vertex> many[4];
	std::uint64_t number = 0;
	firn::ptr<plain> next;
	FIRN_REFERENCES(plain, many, next)
};

static std::vector<firn_member> members_of(const firn_type *type)
{
	CHECK((type->field_count & FIRN_MEMBERS) != 0);
	const auto *first = reinterpret_cast<const firn_member *>(type->fields);
	return {first, first + (type->field_count & ~FIRN_MEMBERS)};
}

static void reflection()
{
	const firn_type *type = firn::detail::type<vertex>();
	// Its references, and of the rest each member once, also where a structure stands in an array.
	std::vector<firn_member> references, others;
	for (const firn_member &member : members_of(type))
		(member.kind == FIRN_REFERENCE ? references : others).push_back(member);
	CHECK(references.size() == 4);
	CHECK(references[0].field.offset == offsetof(vertex, edges) + offsetof(edge, to));
	CHECK(references[2].field.offset == offsetof(vertex, edges) + 2 * sizeof(edge) + offsetof(edge, to));
	CHECK(references[3].field.offset == offsetof(vertex, twin));
	CHECK(references[0].to() == type && references[3].to() == type);
	CHECK(others.size() == 4 && others[1].field.offset == offsetof(vertex, edges));
	CHECK(others[2].kind == FIRN_UNSIGNED && others[2].field.offset == offsetof(vertex, paint));
	CHECK(others[3].kind == FIRN_FLOAT && others[3].field.bytes == sizeof(double));
	CHECK(type->size == sizeof(vertex) && type->version == 1);
	type = firn::detail::type<plain>();
	references = members_of(type);
	CHECK(references.size() == 2 && type->version == 3);
	CHECK(references[0].field.bytes == 32 && references[1].field.offset == offsetof(plain, next));
}

static void rollback(firn::session &session)
{
	try {
		session.transaction([](firn::transaction &tx) {
			tx.set_root("lost", tx.make(vertex{}));
			throw 7;
		});
		CHECK(false);
	} catch (int thrown) {
		CHECK(thrown == 7);
	}
	int result = session.transaction([](firn::transaction &tx) {
		vertex front;
		front.number = 1;
		auto kept = tx.make(front);
		tx.set_root("kept", kept);
		try {
			tx.nested([&](firn::transaction &part) {
				part.set(kept, &vertex::number, 2);
				CHECK(part.get(kept, &vertex::number) == 2);
				throw std::runtime_error("no");
			});
		} catch (const std::runtime_error &) {
		}
		CHECK(tx.get(kept, &vertex::number) == 1);
		tx.nested([&](firn::transaction &part) { part.set(kept, &vertex::weight, 2.5); });
		return 42;
	});
	CHECK(result == 42);
	firn::reading reading(session);
	CHECK(!reading.root<vertex>("lost"));
	CHECK(reading.root<vertex>("kept")->weight == 2.5);
	try {
		(void)reading.root<plain>("kept");
		CHECK(false);
	} catch (const firn::error &error) {
		CHECK(error.status() == FIRN_WRONG_TYPE);
	}
}

/* Objects are moved; references, handles and what they lead to hold. */
static void moving(firn::pool &pool, firn::session &session)
{
	firn::handle<vertex> strong, weak;
	session.transaction([&](firn::transaction &tx) {
		firn::obj<vertex> last;
		for (std::uint64_t i = 0; i < 3000; i++) {
			auto made = tx.make(vertex{i, {}, color::green, {}, 0});
			if (i % 10 == 0) {
				tx.set(made, &vertex::twin, last);
				last = made;
			}
			if (i == 1000)
				strong = firn::handle<vertex>::strong(tx, made);
			if (i == 1001)
				weak = firn::handle<vertex>::weak(tx, made);
		}
		tx.set_root("chain", last);
	});
	firn_collecting how{};
	how.target = 1.01;
	how.pages = FIRN_SMALL_PAGES;
	firn_collected collected = pool.collect(how);
	CHECK(collected.moved_objects > 100 && collected.reclaimed_objects > 2000);
	firn::reading reading(session);
	std::uint64_t count = 0;
	for (auto at = reading.root<vertex>("chain"); at; at = reading.follow(at->twin)) {
		CHECK(at->number == 2990 - count * 10 && at->paint == color::green);
		count++;
	}
	CHECK(count == 300);
	CHECK(strong.get(reading)->number == 1000);
	CHECK(!weak.get(reading));
	CHECK(reading.get(strong.get(reading)).number == 1000);
}

static void limits(const char *path)
{
	const std::uint64_t limit = 24 << 20;
	firn_options options{};
	options.max_bytes = limit;
	firn::pool::create(path, options).close();
	firn::pool again = firn::pool::open(path);
	CHECK(again.limit() == limit);
	again.close();
	options.max_bytes = 2 * limit;
	firn::pool::open(path, options).close();
	options.max_bytes = UINT64_MAX;
	firn::pool changed = firn::pool::open(path);
	CHECK(changed.limit() == 2 * limit);
	changed.close();
	firn::pool without = firn::pool::open(path, options);
	CHECK(!without.limit());
}

int main(int count, char **arguments)
{
	reflection();
	if (count > 2 && std::string_view(arguments[1]) == "limits")
		limits(arguments[2]);
	firn::pool pool = firn::pool::in_memory();
	{
		firn::session session(pool);
		rollback(session);
		moving(pool, session);
		if (count > 1 && std::string_view(arguments[1]) == "stale") {
			firn::obj<vertex> stale;
			{
				firn::reading reading(session);
				stale = reading.root<vertex>("kept");
			}
			std::printf("%f\n", stale->weight);
		}
	}
	CHECK(pool.check().empty());
	pool.close();
	std::printf("done\n");
	return 0;
}
