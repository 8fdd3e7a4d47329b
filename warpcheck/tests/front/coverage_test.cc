// Every row of instructions.def is decoded by a line of samples.ptx, which names the row.
#include <gtest/gtest.h>

#include <set>

#include "sample_files.h"
#include "warpcheck/ir/disassemble.h"
#include "warpcheck/ir/load.h"
#include "warpcheck/isa/match.h"

namespace warpcheck {
namespace {

TEST(Table, HasNoFaults) {
  for (const auto& fault : table_faults()) ADD_FAILURE() << fault;
  EXPECT_EQ(all_forms().size(), static_cast<std::size_t>(FormId::kCount));
}

TEST(Table, EverySampleDecodesToItsRow) {
  const auto module = load("samples.ptx", read_sample("samples.ptx"));
  ASSERT_TRUE(module) << module.error().to_string();
  for (const auto& each : module->unsupported) {
    ADD_FAILURE() << to_string(*module->source, each.diagnostic);
  }
  std::set<FormId> seen;
  for (const DecodedInst& inst : module->find("samples")->code) {
    if (!inst.form) continue;
    seen.insert(inst.form->id);
    const std::string_view line = module->source->line(module->ptx_line(inst));
    const auto comment = line.find("// ");
    ASSERT_NE(comment, std::string_view::npos) << line;
    EXPECT_EQ(line.substr(comment + 3), inst.form->name) << line;
  }
  for (const Form& form : all_forms()) {
    EXPECT_TRUE(seen.contains(form.id)) << "no sample decodes to " << form.name;
  }
}

TEST(Table, EveryOptionalModifierIsAcceptedInItsPlace) {
  for (const Form& form : all_forms()) {
    std::vector<std::string_view> words = form.opcode_words;
    std::vector<std::string> shapes(form.groups.size());
    for (std::size_t i = 0; i < form.groups.size(); ++i) {
      const ModGroup& group = form.groups[i];
      if (!group.types.empty()) {
        words.push_back(to_string(group.types.back()));
      } else if (!group.values.empty()) {
        words.push_back(to_string(group.values.back()));
      } else {
        const ShapePattern& last = group.shapes.back();
        shapes[i] = "m" + std::to_string(last.shape.m) + "n" +
                    std::to_string(last.any_n ? 256 : last.shape.n);
        if (last.shape.k != 0) shapes[i] += "k" + std::to_string(last.shape.k);
        words.push_back(shapes[i]);
      }
    }
    EXPECT_FALSE(match_forms(words).matches.empty()) << form.name;
  }
}

}  // namespace
}  // namespace warpcheck
