// Runs steps: launches at their places, and control flow iteration (turn) by iteration. All work is
// queued on a machine (Steps::run). If the machine captures into a graph, conditions become nodes, and
// the GPU reads their flags.
#pragma once

#include <utility>

#include "gputensor/_kernels/cuda/condition.h"
#include "gputensor/programs/ahead/launches/step.h"

namespace gputensor {

template <class Machine> struct StepTurns;

// Runs steps on a machine (Steps::run).
template <class Machine> struct StepRunner {
    Machine& machine;
    const uint64_t* pieces;  // of the function

    int run(const std::vector<Step>& all, const uint64_t* addresses) {
        for (const Step& step : all) {
            int status = step.kind == STEP_LAUNCH ? launch(step, addresses)
                                                  : StepTurns<Machine>(*this, step, addresses).run();
            if (status) return status;
        }
        return 0;
    }

    int launch(const Step& step, const uint64_t* addresses) {
        spans.clear();
        for (const StepPlace& one : step.places)
            spans.push_back(one.piece < 0 ? 0 : addresses[one.piece] + uint64_t(one.offset));
        return machine.launch(step.list, spans.data());
    }

    std::vector<uint64_t> spans;
};

// One step of control flow: carried values alternate between the memory of the results and the spare
// memory. If the number of turns is known, the last one writes the results.
template <class Machine> struct StepTurns {
    using Addresses = std::vector<uint64_t>;

    StepTurns(StepRunner<Machine>& runner, const Step& step, const uint64_t* addresses)
        : runner(runner), machine(runner.machine), step(step), arena(addresses[0]) {
        for (const StepPlace& one : step.reads)
            reads.push_back(addresses[one.piece] + uint64_t(one.offset));
        for (const StepPlace& one : step.writes)
            writes.push_back(addresses[one.piece] + uint64_t(one.offset));
        for (int64_t offset : step.scratch) spare.push_back(arena + uint64_t(offset));
        word = spare.empty() ? 0 : spare.back();
    }

    int run() {
        switch (step.kind) {
            case STEP_COND: return cond();
            case STEP_WHILE_LOOP: return while_loop();
            case STEP_FORI_LOOP: return fori_loop();
            default: return scan();
        }
    }

    int region(size_t number, const Addresses& inputs, const Addresses& outputs) {
        const Region& one = step.regions[number];
        Addresses addresses = {arena + uint64_t(one.arena)};
        addresses.insert(addresses.end(), inputs.begin(), inputs.end());
        addresses.insert(addresses.end(), outputs.begin(), outputs.end());
        for (size_t fixed : one.fixed) addresses.push_back(runner.pieces[fixed]);
        return runner.run(one.steps, addresses.data());
    }

    int copy(const Addresses& targets, const Addresses& sources) {
        for (size_t i = 0; i < targets.size(); i++) {
            uint64_t nbytes = uint64_t(step.writes[i].nbytes);
            if (targets[i] == sources[i] || !nbytes) continue;
            int status = machine.copy(targets[i], sources[i], nbytes);
            if (status) return status;
        }
        return 0;
    }

    static Addresses part(const Addresses& all, size_t first, size_t last) {
        return Addresses(all.begin() + long(first), all.begin() + long(last));
    }

    int cond() {
        if constexpr (Machine::CAPTURES) return captured_cond();
        bool flag = false;
        int status = machine.read_flag(reads[0], &flag);
        return status ? status : region(flag ? 0 : 1, part(reads, 1, reads.size()), writes);
    }

    int while_loop() {
        if constexpr (Machine::CAPTURES) return captured_while_loop();
        size_t count = writes.size();
        Addresses sources = part(reads, 0, count), captures = part(reads, count, reads.size());
        Addresses targets = writes, others = part(spare, 0, count);
        for (;;) {
            bool flag = false;
            Addresses inputs = joined(sources, captures);
            int status = region(0, inputs, {word});
            if (!status) status = machine.read_flag(word, &flag);
            if (status) return status;
            if (!flag) return copy(writes, sources);
            status = region(1, inputs, targets);
            if (status) return status;
            sources = targets;
            std::swap(targets, others);
        }
    }

    int captured_cond() {
        uint64_t sides[2] = {};
        int status = machine.create(&sides[0]);
        if (!status) status = machine.create(&sides[1]);
        if (!status)
            status = machine.set(reads[0], {{sides[0], CONDITION_IS}, {sides[1], CONDITION_IS_NOT}});
        for (size_t number = 0; number < 2 && !status; number++)
            status = machine.body(sides[number], false, [&] {
                return region(number, part(reads, 1, reads.size()), writes);
            });
        return status;
    }

    // The body is two turns, because it has the same addresses each time: from the results to the
    // spare values and, unless the loop ends, back. A last node copies after an odd number of turns.
    int captured_while_loop() {
        size_t count = writes.size();
        Addresses captures = part(reads, count, reads.size()), others = part(spare, 0, count);
        Addresses from_results = joined(writes, captures), from_others = joined(others, captures);
        uint64_t goes_on = 0, is_odd = 0, again = 0;
        int status = copy(writes, part(reads, 0, count));
        if (!status) status = machine.create(&goes_on);
        if (!status) status = machine.create(&is_odd);
        if (!status) status = region(0, from_results, {word});
        if (!status)
            status = machine.set(word, {{goes_on, CONDITION_IS}, {is_odd, CONDITION_OFF}});
        auto back = [&] {
            int found = region(1, from_others, writes);
            if (!found) found = region(0, from_results, {word});
            return found ? found : machine.set(word, {{goes_on, CONDITION_IS}});
        };
        auto turn = [&] {
            int found = region(1, from_results, others);
            if (!found) found = region(0, from_others, {word});
            if (!found) found = machine.create(&again);
            if (!found)
                found = machine.set(word, {{goes_on, CONDITION_IS},
                                           {again, CONDITION_IS},
                                           {is_odd, CONDITION_IS_NOT}});
            return found ? found : machine.body(again, false, back);
        };
        if (!status) status = machine.body(goes_on, true, turn);
        return status ? status : machine.body(is_odd, false, [&] { return copy(writes, others); });
    }

    // Calls turn(number, sources, targets) such that the last turn writes the results.
    template <class Turn> int turns(int64_t count, size_t carried, Turn turn) {
        Addresses sources = part(reads, 0, carried);
        for (int64_t number = 0; number < count; number++) {
            bool is_odd = (count - number) % 2 == 1;
            Addresses targets = part(is_odd ? writes : spare, 0, carried);
            int status = turn(number, sources, targets);
            if (status) return status;
            sources = targets;
        }
        return count <= 0 ? copy(part(writes, 0, carried), sources) : 0;
    }

    int fori_loop() {
        size_t count = writes.size();
        Addresses captures = part(reads, count, reads.size());
        int64_t lower = step.numbers[0];
        return turns(step.numbers[1] - lower, count,
                     [&](int64_t number, const Addresses& sources, const Addresses& targets) {
                         int status = machine.write_index(word, lower + number);
                         if (status) return status;
                         return region(0, joined(joined({word}, sources), captures), targets);
                     });
    }

    int scan() {
        int64_t length = step.numbers[0];
        size_t carried = size_t(step.numbers[1]);
        const Region& body = step.regions[0];
        return turns(length, carried,
                     [&](int64_t number, const Addresses& sources, const Addresses& targets) {
                         int64_t at = step.numbers[2] ? length - 1 - number : number;
                         Addresses inputs = sources, outputs = targets;
                         for (size_t i = carried; i < reads.size(); i++) {
                             // A turn reads one element of an array, but all of a capture.
                             bool is_capture = step.reads[i].nbytes == body.inputs[i];
                             int64_t offset = is_capture ? 0 : at * body.inputs[i];
                             inputs.push_back(reads[i] + uint64_t(offset));
                         }
                         for (size_t i = carried; i < writes.size(); i++)
                             outputs.push_back(writes[i] + uint64_t(at * body.outputs[i]));
                         return region(0, inputs, outputs);
                     });
    }

    static Addresses joined(Addresses one, const Addresses& two) {
        one.insert(one.end(), two.begin(), two.end());
        return one;
    }

    StepRunner<Machine>& runner;
    Machine& machine;
    const Step& step;
    const uint64_t arena;
    uint64_t word;
    Addresses reads, writes, spare;
};

}  // namespace gputensor
