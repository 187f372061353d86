// The calls of a bound function as steps: launch lists at places in memory, and control flow around
// regions of further steps. Without Python, this is the complete form of a function.
//
// Steps are words of 64 bits, which may come from an untrusted file: `Steps::read` validates counts,
// and `Steps::check` all other numbers, before any step runs. The caller provides a machine, which
// queues launches and copies, and reads the flags of conditions.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gputensor/programs/ahead/launches/launch_list.h"
#include "gputensor/programs/ahead/launches/step_runner.h"

namespace gputensor {

class Steps {
public:
    // `nbytes` has the sizes of the function's pieces, the arena first. False if the words are invalid.
    bool read(const int64_t* words, size_t count, std::vector<int64_t> nbytes) {
        sizes = std::move(nbytes);
        Words left{words, words + count};
        return read_steps(left, steps, 0) && left.at == left.end;
    }

    // Whether all steps stay inside their memory. `sound(list number, reach)` tells that of a list.
    template <class Sound> bool check(Sound sound) const { return check_steps(steps, sizes, sound); }

    // Runs all steps at the addresses of the pieces; returns 0, or the first other status of the
    // machine: machine.launch(list, addresses), copy(dst, src, nbytes), write_index(dst, value),
    // read_flag(address, &flag). In place of read_flag, a machine that CAPTURES into a graph has
    // create(&condition), set(address of a flag, {condition, rule}...) and body(condition, is_loop,
    // work), which queues the work in a node that runs if, or while, the condition is true.
    template <class Machine> int run(Machine& machine, const uint64_t* addresses) const {
        StepRunner<Machine> runner{machine, addresses, {}};
        return runner.run(steps, addresses);
    }

    // Calls `visit` with the number of each list, once for each step that has it.
    template <class Visit> void lists(Visit visit) const { visit_lists(steps, visit); }

    // Whether a step reads the flag of a condition.
    bool has_conditions() const { return has_conditions(steps); }

    std::vector<int64_t> sizes;
    std::vector<Step> steps;

private:
    static constexpr int MOST_NESTED = 32;
    static constexpr int64_t FLAG_NBYTES = 1, INDEX_NBYTES = 8, MOST = int64_t(1) << 60;

    // ---- reading

    struct Words {
        const int64_t *at, *end;

        bool take(int64_t* out) {
            if (at == end) return false;
            *out = *at++;
            return true;
        }
        // A count of items of at least one word each.
        bool count(size_t* out) {
            int64_t found;
            if (!take(&found) || found < 0 || found > end - at) return false;
            *out = size_t(found);
            return true;
        }
        bool places(std::vector<StepPlace>& out) {
            size_t size;
            if (!count(&size)) return false;
            out.resize(size);
            for (StepPlace& one : out)
                if (!take(&one.piece) || !take(&one.offset) || !take(&one.nbytes)) return false;
            return true;
        }
        bool numbers(std::vector<int64_t>& out) {
            size_t size;
            if (!count(&size)) return false;
            out.assign(at, at + size);
            at += size;
            return true;
        }
    };

    static bool read_steps(Words& words, std::vector<Step>& out, int depth) {
        size_t size;
        if (depth > MOST_NESTED || !words.count(&size)) return false;
        out.resize(size);
        for (Step& step : out)
            if (!read_step(words, step, depth)) return false;
        return true;
    }

    static bool read_step(Words& words, Step& step, int depth) {
        if (!words.take(&step.kind) || step.kind < 0 || step.kind >= STEP_KINDS) return false;
        if (step.kind == STEP_LAUNCH) {
            int64_t list;
            if (!words.take(&list) || list < 0) return false;
            step.list = size_t(list);
            return words.places(step.places);
        }
        for (int64_t& number : step.numbers)
            if (!words.take(&number)) return false;
        size_t size;
        if (!words.places(step.reads) || !words.places(step.writes) ||
            !words.numbers(step.scratch) || !words.count(&size) || size > 2)
            return false;
        step.regions.resize(size);
        for (Region& region : step.regions) {
            std::vector<int64_t> fixed;
            if (!words.take(&region.arena) || !words.numbers(region.inputs) ||
                !words.numbers(region.outputs) || !words.numbers(fixed))
                return false;
            for (int64_t one : fixed) {
                if (one < 0) return false;
                region.fixed.push_back(size_t(one));
            }
            if (!read_steps(words, region.steps, depth + 1)) return false;
        }
        return true;
    }

    // ---- checking

    using Sizes = std::vector<int64_t>;
    using Places = std::vector<StepPlace>;

    static bool is_inside(const StepPlace& one, const Sizes& pieces) {
        if (one.piece < 0 || size_t(one.piece) >= pieces.size()) return false;
        int64_t nbytes = pieces[size_t(one.piece)];
        return one.offset >= 0 && one.nbytes >= 0 && one.offset <= nbytes &&
               one.nbytes <= nbytes - one.offset;
    }

    template <class Sound>
    bool check_steps(const std::vector<Step>& all, const Sizes& pieces, Sound& sound) const {
        for (const Step& step : all)
            if (!(step.kind == STEP_LAUNCH ? check_launch(step, pieces, sound)
                                           : check_control(step, pieces, sound)))
                return false;
        return true;
    }

    template <class Sound>
    static bool check_launch(const Step& step, const Sizes& pieces, Sound& sound) {
        std::vector<std::pair<int64_t, int64_t>> reach;
        for (const StepPlace& one : step.places) {
            if (one.piece == -1) {
                reach.push_back({1, 0});  // an empty range
                continue;
            }
            if (one.nbytes || !is_inside(one, pieces)) return false;
            reach.push_back({-one.offset, pieces[size_t(one.piece)] - one.offset});
        }
        return sound(step.list, reach);
    }

    template <class Sound>
    bool check_control(const Step& step, const Sizes& pieces, Sound& sound) const {
        for (const Places* group : {&step.reads, &step.writes})
            for (const StepPlace& one : *group)
                if (!is_inside(one, pieces)) return false;
        for (const Region& region : step.regions) {
            if (region.arena < 0 || region.arena > pieces[0]) return false;
            Sizes inner = {pieces[0] - region.arena};
            for (const std::vector<int64_t>* group : {&region.inputs, &region.outputs})
                for (int64_t nbytes : *group) {
                    if (nbytes < 0 || nbytes > MOST) return false;
                    inner.push_back(nbytes);
                }
            for (size_t number : region.fixed) {
                if (number >= sizes.size()) return false;
                inner.push_back(sizes[number]);
            }
            if (!check_steps(region.steps, inner, sound)) return false;
        }
        switch (step.kind) {
            case STEP_COND: return check_cond(step);
            case STEP_WHILE_LOOP: return check_while_loop(step, pieces[0]);
            case STEP_FORI_LOOP: return check_fori_loop(step, pieces[0]);
            default: return check_scan(step, pieces[0]);
        }
    }

    // Whether the places from `first` on have at least these sizes.
    static bool hold(const Places& places, size_t first, const std::vector<int64_t>& wanted) {
        if (places.size() != first + wanted.size()) return false;
        for (size_t i = 0; i < wanted.size(); i++)
            if (wanted[i] > places[first + i].nbytes) return false;
        return true;
    }

    static bool check_cond(const Step& step) {
        if (step.regions.size() != 2 || step.reads.empty() || step.reads[0].nbytes < FLAG_NBYTES)
            return false;
        for (const Region& region : step.regions)
            if (!hold(step.reads, 1, region.inputs) || !hold(step.writes, 0, region.outputs))
                return false;
        return true;
    }

    // Checks the spare memory of the first `count` results, and the word after it.
    static bool check_spare(const Step& step, size_t count, int64_t word, int64_t arena) {
        if (step.scratch.size() < count + (word ? 1 : 0) || step.writes.size() < count) return false;
        for (size_t i = 0; i < step.scratch.size(); i++) {
            int64_t nbytes = i < count ? step.writes[i].nbytes : 0;
            if (i + 1 == step.scratch.size() && word > nbytes) nbytes = word;
            int64_t offset = step.scratch[i];
            if (offset < 0 || offset > arena || nbytes > arena - offset) return false;
        }
        return true;
    }

    // Checks that carried values have the same size in reads, writes and regions.
    static bool check_carried(const Step& step, size_t count, const std::vector<int64_t>& inputs,
                              size_t first) {
        if (step.reads.size() < count || step.writes.size() < count ||
            inputs.size() != first + step.reads.size())
            return false;
        for (size_t i = 0; i < count; i++)
            if (step.reads[i].nbytes != step.writes[i].nbytes ||
                inputs[first + i] > step.writes[i].nbytes)
                return false;
        return true;
    }

    static bool check_captures(const Step& step, size_t count, const std::vector<int64_t>& inputs,
                               size_t first) {
        for (size_t i = count; i < step.reads.size(); i++)
            if (inputs[first + i] > step.reads[i].nbytes) return false;
        return true;
    }

    static bool check_while_loop(const Step& step, int64_t arena) {
        if (step.regions.size() != 2) return false;
        const Region &condition = step.regions[0], &body = step.regions[1];
        size_t count = step.writes.size();
        return check_spare(step, count, FLAG_NBYTES, arena) &&
               check_carried(step, count, condition.inputs, 0) &&
               check_captures(step, count, condition.inputs, 0) &&
               check_carried(step, count, body.inputs, 0) &&
               check_captures(step, count, body.inputs, 0) && condition.outputs.size() == 1 &&
               condition.outputs[0] <= FLAG_NBYTES && hold(step.writes, 0, body.outputs);
    }

    static bool check_fori_loop(const Step& step, int64_t arena) {
        if (step.regions.size() != 1) return false;
        const Region& body = step.regions[0];
        size_t count = step.writes.size();
        return is_count(step.numbers[0]) && is_count(step.numbers[1]) &&
               check_spare(step, count, INDEX_NBYTES, arena) &&
               check_carried(step, count, body.inputs, 1) &&
               check_captures(step, count, body.inputs, 1) && body.inputs[0] <= INDEX_NBYTES &&
               hold(step.writes, 0, body.outputs);
    }

    static bool check_scan(const Step& step, int64_t arena) {
        int64_t length = step.numbers[0];
        if (step.regions.size() != 1 || !is_count(length) || length < 0 || step.numbers[1] < 0)
            return false;
        const Region& body = step.regions[0];
        size_t count = size_t(step.numbers[1]);
        if (!check_spare(step, count, 0, arena) || !check_carried(step, count, body.inputs, 0) ||
            body.outputs.size() != step.writes.size())
            return false;
        for (size_t i = count; i < step.reads.size(); i++)
            if (!is_stacked(step.reads[i].nbytes, body.inputs[i], length) &&
                step.reads[i].nbytes != body.inputs[i])
                return false;
        for (size_t i = 0; i < count; i++)
            if (body.outputs[i] > step.writes[i].nbytes) return false;
        for (size_t i = count; i < step.writes.size(); i++)
            if (!is_stacked(step.writes[i].nbytes, body.outputs[i], length)) return false;
        return true;
    }

    static bool is_count(int64_t value) { return value > -MOST && value < MOST; }

    static bool is_stacked(int64_t nbytes, int64_t element, int64_t length) {
        return length == 0 || element <= nbytes / length;
    }

    static bool has_conditions(const std::vector<Step>& all) {
        for (const Step& step : all) {
            if (step.kind == STEP_COND || step.kind == STEP_WHILE_LOOP) return true;
            for (const Region& region : step.regions)
                if (has_conditions(region.steps)) return true;
        }
        return false;
    }

    template <class Visit> static void visit_lists(const std::vector<Step>& all, Visit& visit) {
        for (const Step& step : all) {
            if (step.kind == STEP_LAUNCH) visit(step.list);
            for (const Region& region : step.regions) visit_lists(region.steps, visit);
        }
    }
};

}  // namespace gputensor
