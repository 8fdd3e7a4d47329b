#include "warpcheck/ir/load.h"

#include <fmt/format.h>

#include "warpcheck/ir/function_binder.h"
#include "warpcheck/parse/parser.h"

namespace warpcheck {
namespace {

void copy3(const ast::Tuning& from, std::array<std::uint32_t, 3>& to) {
  for (std::size_t i = 0; i < 3; ++i) to[i] = i < from.values.size() ? from.values[i] : 1;
}

void read_bounds(const ast::Function& tree, LaunchBounds& out) {
  for (const ast::Tuning& each : tree.tuning) {
    const std::uint32_t first = each.values.empty() ? 0 : each.values.front();
    if (each.directive == "maxntid")
      copy3(each, out.max_threads);
    else if (each.directive == "reqntid")
      copy3(each, out.required_threads);
    else if (each.directive == "reqnctapercluster")
      copy3(each, out.required_cluster);
    else if (each.directive == "minnctapersm")
      out.min_ctas_per_sm = first;
    else if (each.directive == "maxnreg")
      out.max_registers = first;
    else if (each.directive == "maxclusterrank")
      out.max_cluster_rank = first;
    else if (each.directive == "explicitcluster")
      out.explicit_cluster = true;
    else if (each.directive == "noreturn")
      out.no_return = true;
  }
}

class ModuleBinder {
 public:
  ModuleBinder(const ast::Module& tree, const ParseLimits& limits) : tree_(tree), limits_(limits) {}

  ParseResult<Module> run() {
    module_.source = tree_.source;
    module_.version_major = tree_.version_major;
    module_.version_minor = tree_.version_minor;
    module_.targets.assign(tree_.targets.begin(), tree_.targets.end());
    module_.address_size = tree_.address_size;
    module_.files = tree_.files;
    for (const auto& each : tree_.variables) declare(each);
    std::vector<const ast::Function*> bodies;
    for (const auto& each : tree_.functions) declare(each, bodies);
    for (const auto& each : tree_.aliases) alias(each);
    BindContext context{module_, tree_, globals_, limits_, errors_};
    for (std::uint32_t i = 0; i < bodies.size(); ++i) {
      FunctionBinder(context, i, *bodies[i]).run();
    }
    if (errors_.empty()) return std::move(module_);
    return tl::unexpected(Errors{tree_.source, std::move(errors_)});
  }

 private:
  void error(Span span, std::string message) {
    if (errors_.size() < limits_.max_errors) errors_.push_back({span, std::move(message)});
  }

  void declare(const ast::Variable& variable) {
    const auto index = static_cast<std::uint32_t>(module_.symbols.size());
    const auto [it, fresh] =
        globals_.try_emplace(variable.name, Entity{Entity::Kind::kSymbol, index});
    if (fresh) {
      module_.symbols.push_back(make_symbol(variable));
    } else if (module_.symbols[it->second.index].linkage == Linkage::kExtern) {
      module_.symbols[it->second.index] = make_symbol(variable);  // the definition
    } else if (variable.linkage != Linkage::kExtern) {
      error(variable.span, fmt::format("'{}' is declared twice", variable.name));
    }
  }

  /// A declaration and its definition are one function; `bodies` keeps the tree to bind.
  void declare(const ast::Function& tree, std::vector<const ast::Function*>& bodies) {
    const auto index = static_cast<std::uint32_t>(module_.functions.size());
    const auto [it, fresh] =
        globals_.try_emplace(tree.name, Entity{Entity::Kind::kFunction, index});
    if (!fresh && it->second.kind != Entity::Kind::kFunction) {
      return error(tree.span, fmt::format("'{}' is declared twice", tree.name));
    }
    if (fresh) {
      module_.functions.emplace_back();
      bodies.push_back(&tree);
    } else if (tree.has_body) {
      if (bodies[it->second.index]->has_body) {
        return error(tree.span, fmt::format("'{}' is defined twice", tree.name));
      }
      bodies[it->second.index] = &tree;
    } else {
      return;
    }
    Function& out = module_.functions[it->second.index];
    out.name = std::string(tree.name);
    out.linkage = tree.linkage;
    out.is_entry = tree.is_entry;
    out.has_body = tree.has_body;
    read_bounds(tree, out.bounds);
  }

  void alias(const ast::Alias& node) {
    const auto target = globals_.find(node.target);
    if (target == globals_.end() || target->second.kind != Entity::Kind::kFunction) {
      return error(node.span, fmt::format("there is no function '{}'", node.target));
    }
    globals_[node.name] = target->second;
  }

  const ast::Module& tree_;
  const ParseLimits& limits_;
  Module module_;
  Names globals_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

Symbol make_symbol(const ast::Variable& variable) {
  Symbol out;
  out.name = std::string(variable.name);
  out.space = variable.space;
  out.linkage = variable.linkage;
  out.type = variable.type;
  out.vector = variable.vector;
  out.dims = variable.dims;
  out.init = variable.init;
  out.is_register_param = variable.space == Space::kReg;
  const auto element = static_cast<std::uint64_t>(std::max(bit_width(variable.type), 8) / 8) *
                       static_cast<std::uint64_t>(variable.vector);
  out.bytes = element;
  for (const std::uint64_t dim : variable.dims) {
    // Sizes are capped so that a product of hostile dimensions cannot wrap.
    if (dim == 0 && !variable.init.empty())
      out.bytes *= variable.init.size();
    else
      out.bytes = dim != 0 && out.bytes > (std::uint64_t{1} << 50) / dim ? UINT64_MAX >> 8
                                                                         : out.bytes * dim;
  }
  out.align = variable.align != 0 ? variable.align : static_cast<std::uint32_t>(element);
  return out;
}

ParseResult<Module> bind(const ast::Module& tree, const ParseLimits& limits) {
  return ModuleBinder(tree, limits).run();
}

ParseResult<Module> load(std::string name, std::string text, const ParseLimits& limits) {
  auto source = std::make_shared<const SourceFile>(std::move(name), std::move(text));
  const auto tree = parse(std::move(source), limits);
  if (!tree) return tl::unexpected(tree.error());
  return bind(*tree, limits);
}

}  // namespace warpcheck
