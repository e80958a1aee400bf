// Package sagatest tests sagas by given, when and then, on the engine that runs them in production, on real tables
// and in virtual time.
//
//	sagatest.Test(t, "transfer-saga", func(f *sagatest.Fixture[TransferSaga]) {
//		f.Given(TransferRequested{TransferID: "t1", …})
//		f.WhenTimePasses(30 * time.Minute)
//		f.ExpectCommands(ReverseDebit{…})
//		f.ExpectEnded()
//	}, saga.Start((*TransferSaga).OnRequested, saga.By("transferId")), …)
//
// Given-steps must succeed; one that fails ends the test. What when-steps return is kept for the expectations. When-steps
// that follow each other are one act, and only what an act did counts as new: its commands, its new and its cancelled
// deadlines, its errors. A given-step or an expectation ends the act, and the next when-step begins another one. An error
// that no expectation asked about by then fails the test.
//
// Expectations do not stop the test. Each that fails says what was expected, what was found, and what happened until
// then, with the times and effects of each step. They look at the sagas of the fixture's type; those of other types that
// were registered beside it run too, and stand in that history.
//
// Nothing happens behind a test's back: deadlines fire only in steps that let time pass, and commands are delivered only
// by WhenCommandsDelivered.
package sagatest
