"""Rollouts as traces: each sampled id is trained in exactly one, after the ids that it was sampled after."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ferrule.conversation import SampledTokens
from ferrule.tokens.render import Rollout

IDS = st.lists(st.integers(0, 3), min_size=1, max_size=6)


def sampled_tokens(ids, number):
    logprobs = tuple(-number - at / 100 for at in range(len(ids)))
    # Those of the second one were stored without the log-probabilities by which they were drawn.
    drawn = () if number == 2 else tuple(logprob / 2 for logprob in logprobs)
    return SampledTokens(tuple(ids), logprobs, "abc", "hermes", "turn", drawn)


@st.composite
def generations(draw):
    """Prompts, each of which extends what came before it, cuts it short, or is another, and what is sampled after."""
    made, before = [], []
    for number in range(1, 1 + draw(st.integers(0, 6))):
        kept = draw(st.sampled_from([len(before), len(before), draw(st.integers(0, len(before)))]))
        prompt = before[:kept] + draw(IDS)
        ids = draw(IDS)
        made.append((prompt, sampled_tokens(ids, number)))
        before = prompt + ids
    return made


@given(made=generations())
@settings(max_examples=300, deadline=None)
def test_each_sampled_id_is_trained_once_after_the_ids_that_it_was_sampled_after(made):
    rollout = Rollout()
    for prompt, sampled in made:
        rollout.add(prompt, sampled)
    traces = rollout.traces()
    # I6, and I2: what is trained was sampled, and has its log-probability.
    for trace in traces:
        assert len(trace.ids) == len(trace.mask) == len(trace.logprobs) == len(trace.sampling_logprobs)
        assert [on == 1 for on in trace.mask] == [logprob is not None for logprob in trace.logprobs]
        assert trace.mask[-1] == 1
        for logprob, drawn in zip(trace.logprobs, trace.sampling_logprobs, strict=True):
            assert drawn is None or (logprob is not None and drawn == logprob / 2)
    known = [one for trace in traces for one in trace.sampling_logprobs if one is not None]
    assert known == [one for _, sampled in made for one in sampled.sampling_logprobs]
    trained = [
        (trace.ids[:at], trace.ids[at], trace.logprobs[at])
        for trace in traces
        for at, on in enumerate(trace.mask)
        if on
    ]
    # I1 and I9: the ids before a sampled one are those that the engine had.
    expected = [
        ((*prompt, *sampled.ids[:at]), sampled.ids[at], sampled.logprobs[at])
        for prompt, sampled in made
        for at in range(len(sampled.ids))
    ]
    assert trained == expected


@given(made=generations())
@settings(max_examples=100, deadline=None)
def test_a_trace_is_cut_only_where_a_prompt_does_not_extend_what_came_before(made):
    rollout = Rollout()
    cuts, before = 0, []
    for prompt, sampled in made:
        cuts += prompt[: len(before)] != before
        rollout.add(prompt, sampled)
        before = prompt + list(sampled.ids)
    assert len(rollout.traces()) == cuts + bool(made)


def test_traces_may_be_asked_for_while_the_rollout_goes_on():
    rollout = Rollout()
    assert rollout.traces() == ()
    rollout.add([1, 2], sampled_tokens([3], 1))
    first = rollout.traces()
    rollout.add([1, 2, 3, 4], sampled_tokens([5], 2))
    assert [trace.ids for trace in first] == [(1, 2, 3)]
    assert [trace.ids for trace in rollout.traces()] == [(1, 2, 3, 4, 5)]
