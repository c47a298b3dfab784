/*
 * Collections for firn.hpp, which includes this: the structures of containers.h with the names of the standard's.
 *
 *     session.transaction([](firn::transaction &tx) {
 *         firn::map<std::string, std::uint64_t> ages(tx, "ages");     made if there is no such root
 *         ages["Ada"] = 36;
 *         ages.insert({"Grace", 85});
 *     });
 *     firn::reading reading(session);
 *     firn::map_view<std::string, std::uint64_t> ages(reading, "ages");
 *     for (const auto &[name, age] : ages)
 *         ...
 *
 * Each is a name for a collection in one operation: firn::map, unordered_map and vector in a transaction, map_view,
 * unordered_map_view and vector_view in any. To keep one in an object give that a member firn::ptr<firn::map<K, V>>,
 * and store map.object() there.
 *
 * Keys are integers, enumerations, std::string or std::array of bytes, or a type that firn::key_bytes is specialised
 * for; a map has them in their order. Values and elements are std::string, or what a type may hold that is stored,
 * without references: the collector would not see them. Content is handed out as copies, so dereferencing an iterator
 * yields a value; `m[key] = value` works, by a value that stands for the place.
 *
 * Iterators. In a transaction they go by key, or by index, and what is changed meanwhile they see; those of an
 * unordered_map are no longer good when something is inserted or removed. Those of a reading fetch some entries at a
 * time; each batch is of one moment.
 */
#ifndef FIRN_CONTAINERS_HPP
#define FIRN_CONTAINERS_HPP

#include "../firn.hpp"

#include "containers/map.hpp"
#include "containers/unordered_map.hpp"
#include "containers/vector.hpp"

#endif /* FIRN_CONTAINERS_HPP */
