import TidingsBackend

await TidingsCommand.main()
