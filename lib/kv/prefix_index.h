// SPDX-License-Identifier: Apache-2.0
#ifndef INCIPIT_KV_PREFIX_INDEX_H_
#define INCIPIT_KV_PREFIX_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/kv_layout.h"
#include "incipit/sampling.h"
#include "kv/chain_table.h"

namespace incipit::kv {

using device::BlockId;
using device::kBlockTokens;

/// The token ids of one block.
using TokenBlock = std::span<const TokenId, kBlockTokens>;

/// The block that starts at token `index * kBlockTokens`.
inline TokenBlock token_block(std::span<const TokenId> tokens, std::size_t index) {
  return tokens.subspan(index * kBlockTokens).first<kBlockTokens>();
}

/// The prefixes whose KV lies in a pool: per namespace a radix tree over blocks of 16 tokens. One
/// node is one block; the path from its root spells the prefix.
///
/// A node is found by the hash of its whole prefix, which the caller makes, and proved by its
/// parent and its token ids; the parent stands for all that comes before it, namespace included. So
/// a colliding hash costs time and nothing else.
///
/// A node has the id of its block. Not thread-safe.
class PrefixIndex {
 public:
  /// For blocks whose ids are below `capacity`; ids of roots are not.
  explicit PrefixIndex(std::size_t capacity);

  std::size_t size() const noexcept { return table_.size(); }  // nodes
  std::size_t name_spaces() const noexcept { return names_.size(); }

  /// The root of a namespace, or kNoNode.
  NodeId find_root(std::string_view name_space) const;
  /// The same, made where there is none; insert() into it next. It lives until its last node is
  /// removed.
  NodeId make_root(std::string_view name_space);

  /// The child of `parent` with these tokens, or kNoNode.
  NodeId find(NodeId parent, std::uint64_t hash, TokenBlock tokens) const;
  /// Follows the blocks of `tokens` from `root` as far as they are known, at most hashes.size() of
  /// them. Adds their nodes to `path`.
  void walk(NodeId root, std::span<const std::uint64_t> hashes, std::span<const TokenId> tokens,
            std::vector<NodeId>& path) const;

  /// Tokens that a block and a prompt begin with alike.
  struct Run {
    NodeId node = kNoNode;
    std::size_t tokens = 0;
  };
  /// The child of `parent` that begins like `tokens` for longest, the youngest of several. Looks at
  /// the kMaxSiblings youngest only: behind a popular static text there may be any number.
  Run longest_run(NodeId parent, std::span<const TokenId> tokens) const;
  static constexpr std::size_t kMaxSiblings = 128;

  /// Starts to load what find() of a hash and insert() of a block will touch.
  void prefetch(std::uint64_t hash, BlockId block) const noexcept {
    prefetch(hash);
    prefetch_node(block);
  }
  /// The same for a node that is near by, and for remove() of one.
  void prefetch(std::uint64_t hash) const noexcept { table_.prefetch(hash); }
  /// Adds a child that `parent` does not have yet, for a block that is in no node.
  void insert(NodeId parent, std::uint64_t hash, TokenBlock tokens, BlockId block);
  /// Removes a leaf, and its root with the last one.
  void remove(NodeId leaf);
  /// Removes everything. O(capacity).
  void clear() noexcept;

  NodeId parent(NodeId node) const { return nodes_.at(node).parent; }
  /// Of the prefix that ends with it.
  std::uint64_t hash(NodeId node) const { return nodes_.at(node).hash; }
  TokenBlock tokens(NodeId node) const { return nodes_.at(node).tokens; }
  bool is_leaf(NodeId node) const { return nodes_.at(node).first_child == kNoNode; }
  bool is_used(NodeId node) const { return nodes_.at(node).parent != kNoNode; }
  bool is_root(NodeId node) const noexcept { return node >= nodes_.size(); }
  /// The youngest child of a node or root, or kNoNode.
  NodeId first_child(NodeId parent) const;
  /// The next older child of the same parent, or kNoNode.
  NodeId next_sibling(NodeId node) const { return nodes_.at(node).older; }

  /// Throws Error{kInternal} where nodes, table and roots disagree. O(capacity).
  void check_integrity() const;

 private:
  struct Node {
    std::array<TokenId, kBlockTokens> tokens = {};
    std::uint64_t hash = 0;                     // of the prefix
    NodeId parent = kNoNode;                    // kNoNode: not used
    NodeId first_child = kNoNode;               // the youngest
    NodeId older = kNoNode, younger = kNoNode;  // siblings
  };
  using Names = std::map<std::string, NodeId, std::less<>>;
  struct Root {
    NodeId first_child = kNoNode;  // kNoNode: not used
    NodeId next_unused = kNoNode;
    Names::iterator name = {};
  };

  Root& root(NodeId id) { return roots_.at(id - nodes_.size()); }
  void set_first_child(NodeId parent, NodeId child);
  void prefetch_node(NodeId node) const noexcept;
  void drop_root(NodeId id);

  std::vector<Node> nodes_;  // fixed size
  std::vector<Root> roots_;  // their ids follow those of the nodes
  NodeId unused_root_ = kNoNode;
  Names names_;  // namespace to root
  ChainTable table_;
};

}  // namespace incipit::kv

#endif  // INCIPIT_KV_PREFIX_INDEX_H_
