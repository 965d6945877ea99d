await Demo.main()
